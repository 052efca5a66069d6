//! Decides about each request for a page, and each form that a page sends, before any handler: where it
//! comes from, who sends it, and whether they may. What it needs follows from its row in
//! `crates/access/src/needs.rs`, so that a new page or form has all of this by itself.

use std::sync::Arc;

use axum::{body::Body, extract::Request, middleware::Next, response::Response};
use forebay_access::{EVENTS, Identity, Needs, Reader, SecretHash, TokenId, of_events, of_form, of_page};
use forebay_edge::{
    access::{Access, AuthenticatedCaller},
    admission::Caller,
    audit::Auditor,
    connections::Episodes,
    tls::Principal,
};
use forebay_store::SessionRow;
use forebay_types::{Reason, Refusal};
use governor::clock::DefaultClock;
use http::{HeaderMap, Method, StatusCode, request::Parts};
use maud::html;

use super::{
    answers::{
        Answer, forbidden, not_understood, refused, shows_header, stale_form, turned_away, unreadable,
    },
    attempts::Attempts,
    cookies::{Cookies, SessionId},
    forms::{self, FormKey, LOGIN, NAMESPACE, SIGNATURE},
    lasting::while_allowed,
    protection::protect,
    sessions::Sessions,
    visitor::Visitor,
};
use crate::{
    connect::Failure,
    fields::Fields,
    html::message,
    origins::{self, Origins},
    page_fields,
};

/// The field that names the page which is followed.
const FOLLOWED: &str = "page";

/// Decides who may read pages and send forms.
pub struct Keeper {
    /// Decides who may do what.
    pub(super) access: Arc<Access>,
    /// Sessions of people who have logged in.
    pub(super) sessions: Sessions,
    /// Cookies by which browsers show their sessions.
    pub(super) cookies: Cookies,
    /// Signs forms.
    pub(super) forms: Arc<FormKey>,
    /// How often logins may be tried.
    pub(super) attempts: Attempts,
    /// Writes them down.
    pub(super) audit: Arc<Auditor>,
    /// Where programs that are no browsers may send something from.
    origins: Origins,
    /// Requests that others' pages have sent.
    foreign: Episodes,
}

impl Keeper {
    /// With these rights, sessions and origins.
    pub fn new(
        access: Arc<Access>,
        audit: Arc<Auditor>,
        sessions: Sessions,
        cookies: Cookies,
        forms: FormKey,
        origins: Origins,
    ) -> Self {
        let attempts = Attempts::new(DefaultClock::default());
        let (forms, foreign) = (Arc::new(forms), Episodes::default());
        Self { access, sessions, cookies, forms, attempts, audit, origins, foreign }
    }

    /// Whether browsers reach the node over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.cookies.is_secure()
    }

    /// Lets a request pass, with what its handler reads, or says what is answered.
    async fn admit(&self, request: Request) -> Result<Request, Answer> {
        let (head, body) = request.into_parts();
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let (needs, reader) = of_page(head.uri.path());
        match of_form(head.uri.path()) {
            Some(needs) if !reads => self.admit_form(head, body, needs).await,
            None if !reads && reader == Reader::Person => {
                self.check_origin(&head.headers)?;
                Err(Failure::method(&head.method, "GET").answer(None).into())
            }
            _ => Ok(Request::from_parts(self.admit_reader(head, needs, reader).await?, body)),
        }
    }

    /// A page, or what a program reads.
    async fn admit_reader(&self, mut head: Parts, needs: Needs, reader: Reader) -> Result<Parts, Answer> {
        let is_probe = (needs, reader) == (Needs::Nothing, Reader::Program);
        if !is_probe && !self.origins.may_ask(&head.method, &head.headers) {
            let refusal = origins::foreign();
            self.note(&refusal);
            return Err(refused(&refusal));
        }
        let query = Fields::read(head.uri.query().unwrap_or_default().as_bytes());
        let needs = if head.uri.path() == EVENTS { of_events(query.get(FOLLOWED)) } else { needs };
        let visitor = match (needs, reader) {
            (Needs::Nothing, Reader::Program) => Ok(self.nobody()),
            _ => self.visitor(&head, reader).await,
        };
        let visitor = match (visitor, needs, reader) {
            (Ok(visitor), ..) => visitor,
            // Whoever has a cookie or a certificate that is of no use may see it too.
            (Err(_), Needs::Nothing, _) => self.nobody(),
            (Err(refusal), _, Reader::Person) => return Err(turned_away(&head, &refusal)),
            (Err(refusal), _, Reader::Program) => return Err(refused(&refusal)),
        };
        if let Err(refusal) = permit(&visitor, needs, &query) {
            if let Some((caller, peer)) = denied(&head, &visitor, &refusal) {
                self.audit.deny_page(head.uri.path(), query.get(NAMESPACE), caller, &peer, &refusal);
            }
            return Err(match reader == Reader::Person && !shows_header(&head) {
                true => forbidden(&visitor, &refusal),
                false => refused(&refusal),
            });
        }
        if let Err(refusal) = page_fields::check(head.uri.path(), &query) {
            return Err(match reader == Reader::Person && !shows_header(&head) {
                true => not_understood(&refusal),
                false => refused(&refusal),
            });
        }
        self.let_in(&mut head, visitor, needs, query);
        Ok(head)
    }

    /// A form that a page sends.
    async fn admit_form(&self, mut head: Parts, body: Body, needs: Needs) -> Result<Request, Answer> {
        if head.method != Method::POST {
            return Err(Failure::method(&head.method, "POST").answer(None).into());
        }
        self.check_origin(&head.headers)?;
        let visitor = match needs {
            // A login and a logout are anybody's. So they work while no session can be read.
            Needs::Nothing => self.nobody(),
            _ => match self.visitor(&head, Reader::Person).await {
                Ok(visitor) => visitor,
                Err(refusal) => return Err(turned_away(&head, &refusal)),
            },
        };
        let fields = forms::receive(&head.headers, body).await.map_err(unreadable)?;
        let path = head.uri.path();
        // A form that is left open for longer than its session lasts is still that of its session.
        let bound = match path {
            LOGIN => self.cookies.login(&head.headers),
            _ => Some(self.cookies.session(&head.headers).unwrap_or_else(|| visitor.bound())),
        };
        let signed = bound.is_some_and(|bound| self.forms.accepts(fields.get(SIGNATURE), &bound, path));
        if !signed || fields.repeats(SIGNATURE) {
            return Err(stale_form().into());
        }
        if let Err(refusal) = permit(&visitor, needs, &fields) {
            if let Some((caller, peer)) = denied(&head, &visitor, &refusal) {
                let namespace = fields.get(NAMESPACE);
                self.audit.deny_form(path, namespace, caller, &peer, &refusal).await;
            }
            return Err(forbidden(&visitor, &refusal));
        }
        self.let_in(&mut head, visitor, needs, fields);
        Ok(Request::from_parts(head, Body::empty()))
    }

    /// Attaches the visitor and the fields, which handlers read.
    fn let_in(&self, head: &mut Parts, visitor: Visitor, needs: Needs, fields: Fields) {
        let namespace = fields.get(NAMESPACE).to_owned();
        head.extensions.insert(AdmittedVisitor { visitor: visitor.clone(), needs, namespace });
        head.extensions.insert(visitor);
        head.extensions.insert(fields);
    }

    /// A page of this node must have sent what changes something.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Answer> {
        match origins::is_own_page(headers) {
            true => Ok(()),
            false => {
                let refusal = Refusal::new(Reason::NotAllowed, "no page of this node sent this request");
                self.note(&refusal);
                let said = html! { p { "The request comes from another site. Nothing was done." } };
                Err(message(StatusCode::FORBIDDEN, "Not from here", said).into())
            }
        }
    }

    fn note(&self, refusal: &Refusal) {
        if self.foreign.begins() {
            tracing::warn!("an HTTP request was refused: {}", refusal.message);
        }
    }

    /// The visitor who sends a request: by its token, or else by its session, or else by the certificate of
    /// its connection.
    async fn visitor(&self, head: &Parts, reader: Reader) -> Result<Visitor, Refusal> {
        let caller = head.extensions.get::<Caller>();
        let missing = || Refusal::new(Reason::Overloaded, "the request has no connection of this server");
        let caller = caller.ok_or_else(missing)?;
        if self.access.is_on() && !shows_header(head) {
            if let Some(found) = self.cookies.session(&head.headers)
                && let Some(who) = self.of_session(&found).await?
            {
                caller.load.accept();
                return Ok(self.known(who, Some(found)));
            }
            if reader == Reader::Person && caller.principal == Principal::Unknown {
                // Nothing is shown, which is how everybody begins: no failure to be counted.
                return Err(Refusal::new(Reason::NoCredentials, "nobody has logged in"));
            }
        }
        let who = caller.authenticate(&self.access, &head.headers, "http")?;
        Ok(self.known(who, None))
    }

    /// Whose a session is that is looked at. That is no use of it.
    async fn holder_of(&self, id: &SessionId) -> Option<AuthenticatedCaller> {
        self.sessions.look(id).await.ok().flatten().and_then(|row| self.holder(&row))
    }

    async fn of_session(&self, id: &SessionId) -> Result<Option<AuthenticatedCaller>, Refusal> {
        let row = self.sessions.find(id).await?;
        Ok(row.and_then(|row| self.holder(&row)))
    }

    /// Whose a session is. `None`: its token is of no use any more.
    pub(super) fn holder(&self, row: &SessionRow) -> Option<AuthenticatedCaller> {
        let token = TokenId::new(&row.token_id)?;
        self.access.of_session(token, SecretHash::from_bytes(row.secret))
    }

    /// Whether a visitor may still have what it was let in for.
    async fn may_still(&self, AdmittedVisitor { visitor, needs, namespace }: AdmittedVisitor) -> bool {
        let who = match (&visitor.session, &visitor.who) {
            (Some(id), _) => self.holder_of(id).await,
            (None, Some(who)) => self.access.again(who).ok(),
            (None, None) => return needs == Needs::Nothing,
        };
        who.is_some_and(|who| who.permit(needs, &namespace).is_ok())
    }

    fn known(&self, who: AuthenticatedCaller, session: Option<SessionId>) -> Visitor {
        Visitor { who: Some(who), session, forms: self.forms.clone() }
    }

    fn nobody(&self) -> Visitor {
        Visitor { who: None, session: None, forms: self.forms.clone() }
    }
}

/// Whether it may, in the namespace of the fields.
fn permit(visitor: &Visitor, needs: Needs, fields: &Fields) -> Result<(), Refusal> {
    // The first one counts here and for the handler. Whoever sends two means something else by it.
    if needs.is_in_namespace() && fields.repeats(NAMESPACE) {
        return Err(Refusal::field(NAMESPACE, "is there more than once"));
    }
    match &visitor.who {
        Some(who) => who.permit(needs, fields.get(NAMESPACE)),
        None if needs == Needs::Nothing => Ok(()),
        None => Err(Refusal::new(Reason::NoCredentials, "nobody has logged in")),
    }
}

/// The identity that is refused, and its address, if it is refused for want of a right.
fn denied<'a>(head: &Parts, visitor: &'a Visitor, refusal: &Refusal) -> Option<(&'a Identity, String)> {
    let caller = head.extensions.get::<Caller>()?;
    let is_denied = matches!(refusal.reason, Reason::WrongNamespace | Reason::ScopeMissing);
    visitor.who.as_ref().filter(|_| is_denied).map(|who| (&*who.identity, caller.from().to_string()))
}

/// A visitor who was let in, and the right that was needed.
#[derive(Clone)]
struct AdmittedVisitor {
    /// The visitor.
    visitor: Visitor,
    /// The right that the page needs.
    needs: Needs,
    /// Where it needs it.
    namespace: String,
}

/// Lets a request for a page pass, or answers why not. Every answer is protected, and one that lasts ends
/// with the rights to it.
pub async fn pass(keeper: &Arc<Keeper>, request: Request, next: Next) -> Response {
    let mut response = match keeper.admit(request).await {
        Ok(request) => {
            let admitted = request.extensions().get::<AdmittedVisitor>().cloned();
            let response = next.run(request).await;
            match admitted.filter(|_| keeper.access.is_on()) {
                Some(admitted) => {
                    let keeper = keeper.clone();
                    let may = move || {
                        let (keeper, admitted) = (keeper.clone(), admitted.clone());
                        async move { keeper.may_still(admitted).await }
                    };
                    response.map(|body| while_allowed(body, may))
                }
                None => response,
            }
        }
        Err(answer) => *answer,
    };
    protect(response.headers_mut(), keeper.is_secure());
    response
}

#[cfg(test)]
mod tests {
    use forebay_access::Scope;

    use super::*;

    #[test]
    fn a_right_in_a_namespace_is_one_in_that_of_the_fields() {
        let forms = Arc::new(FormKey::new(&[b"secret"]));
        let who = AuthenticatedCaller::of_grants(&["own:operate", "*:observe"]);
        let visitor = Visitor { who: Some(who), session: None, forms };
        let told = |needs, fields: &str| permit(&visitor, needs, &Fields::read(fields.as_bytes()));
        let reason = |needs, fields| told(needs, fields).map_err(|refusal| refusal.reason);
        let operate = Needs::InNamespace(Scope::Operate);
        assert_eq!(reason(operate, "ns=own&a=b"), Ok(()));
        assert_eq!(reason(operate, "ns=other"), Err(Reason::ScopeMissing));
        assert_eq!(reason(operate, ""), Err(Reason::ScopeMissing));
        assert_eq!(
            reason(operate, "ns=own&ns=other"),
            Err(Reason::InvalidField),
            "whoever reads the second one"
        );
        assert_eq!(reason(Needs::InNamespaces(Scope::Observe), "ns=-"), Ok(()));
        assert_eq!(reason(Needs::Everywhere(Scope::Operate), "ns=own"), Err(Reason::ScopeMissing));
        let nobody = Visitor { who: None, ..visitor.clone() };
        assert!(permit(&nobody, Needs::Nothing, &Fields::default()).is_ok());
        assert!(permit(&nobody, Needs::Credential, &Fields::default()).is_err());
    }

    #[test]
    fn forms_of_others_have_other_signatures() {
        let forms = Arc::new(FormKey::new(&[b"secret"]));
        let visitor = |who, session| Visitor { who, session, forms: forms.clone() };
        let known = || Some(AuthenticatedCaller::of_grants(&["*:all"]));
        let all = [
            visitor(None, None),
            visitor(known(), None),
            visitor(known(), Some([1; 32])),
            visitor(known(), Some([2; 32])),
        ];
        let signatures: std::collections::BTreeSet<_> = all
            .iter()
            .flat_map(|visitor| ["/a", "/b"].map(|path| visitor.signature(path).into_string()))
            .collect();
        assert_eq!(signatures.len(), 8);
    }
}
