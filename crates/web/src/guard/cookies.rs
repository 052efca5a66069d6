//! The cookies of a browser: its session, and the login that it is about to make.
//!
//! A cookie of a session holds its id, 256 random bits, and a signature. The signature opens nothing: it
//! keeps those who make ids up from having the catalog asked for them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_edge::{
    random::{NoRandomNumbers, random_bytes},
    signing::{SIGNATURE_BYTES, SigningKey},
};
use http::{HeaderMap, HeaderValue, header::COOKIE};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Random bytes of an id.
const ID_BYTES: usize = 32;
/// How long a form of the login may be left open, in seconds.
const LOGIN_SECONDS: u32 = 3_600;

/// SHA-256 of the id of a session: what is kept of it.
pub(crate) type SessionId = [u8; 32];

/// The names of the cookies, and the key that signs ids.
pub struct Cookies {
    /// Holds a session.
    session: String,
    /// Ties a form of the login to its browser.
    login: String,
    /// They are sent over TLS alone.
    secure: bool,
    /// Signs ids.
    key: SigningKey,
}

impl Cookies {
    /// For a port. With TLS the browser keeps others from setting the cookies. Without it the names tell
    /// ports apart, since cookies do not.
    pub fn new(secure: bool, port: u16, secrets: &[&[u8]]) -> Self {
        let name = if secure { "__Host-forebay".to_owned() } else { format!("forebay_{port}") };
        let key = SigningKey::new("forebay sessions", secrets);
        Self { login: format!("{name}_login"), session: name, secure, key }
    }

    /// Whether they are sent over TLS alone.
    pub(crate) fn is_secure(&self) -> bool {
        self.secure
    }

    /// A new session: its cookie, and what is kept of it.
    pub(crate) fn new_session(&self) -> Result<(HeaderValue, SessionId), NoRandomNumbers> {
        let id = random_bytes::<ID_BYTES>()?;
        let value = URL_SAFE_NO_PAD.encode([&id[..], &self.key.sign(&[&id])].concat());
        Ok((self.cookie(&self.session, &value, None), Sha256::digest(id).into()))
    }

    /// The session that a browser shows, whether it is one or not.
    pub fn session(&self, headers: &HeaderMap) -> Option<SessionId> {
        values(headers, &self.session).find_map(|value| {
            let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
            let (id, signature) = bytes.split_last_chunk::<SIGNATURE_BYTES>()?;
            let signed = bool::from(self.key.sign(&[id]).ct_eq(signature)) && id.len() == ID_BYTES;
            signed.then(|| Sha256::digest(id).into())
        })
    }

    /// Takes the session from the browser.
    pub(crate) fn without_session(&self) -> HeaderValue {
        self.cookie(&self.session, "", Some(0))
    }

    /// A new form of the login: its cookie, and what the form is bound to.
    pub(crate) fn new_login(&self) -> Result<(HeaderValue, [u8; 32]), NoRandomNumbers> {
        let value = URL_SAFE_NO_PAD.encode(random_bytes::<ID_BYTES>()?);
        let cookie = self.cookie(&self.login, &value, Some(LOGIN_SECONDS));
        Ok((cookie, Sha256::digest(value).into()))
    }

    /// The value to which the login form is bound that a browser has open.
    pub fn login(&self, headers: &HeaderMap) -> Option<[u8; 32]> {
        let is_whole = |value: &&str| URL_SAFE_NO_PAD.decode(value).is_ok_and(|id| id.len() == ID_BYTES);
        values(headers, &self.login).find(is_whole).map(|value| Sha256::digest(value).into())
    }

    /// The browser needs its form of the login no more.
    pub(crate) fn without_login(&self) -> HeaderValue {
        self.cookie(&self.login, "", Some(0))
    }

    fn cookie(&self, name: &str, value: &str, seconds: Option<u32>) -> HeaderValue {
        let age = seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// The values of the cookies of a name. A browser may have several, of several paths.
fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pairs: &[&str]) -> HeaderMap {
        pairs.iter().map(|pair| (COOKIE, HeaderValue::try_from(*pair).unwrap())).collect()
    }

    fn pair(cookie: &HeaderValue) -> String {
        cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_session_is_known_by_its_cookie() {
        let cookies = Cookies::new(true, 7421, &[b"secret"]);
        let (cookie, id) = cookies.new_session().unwrap();
        let text = cookie.to_str().unwrap();
        assert!(text.starts_with("__Host-forebay="), "{text}");
        assert!(text.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{text}");
        let own = pair(&cookie);
        assert_eq!(own.len(), "__Host-forebay=".len() + 64, "{own}");
        assert_eq!(cookies.session(&shown(&[&own])), Some(id));
        let among = format!("a=b; __Host-forebay=x;{own}; __Host-forebay_login=c");
        assert_eq!(cookies.session(&shown(&["z=y", &among])), Some(id));
        assert_ne!(cookies.new_session().unwrap().1, id);
        let gone = cookies.without_session();
        assert!(gone.to_str().unwrap().ends_with("; Max-Age=0"), "{gone:?}");
        assert_eq!(cookies.session(&shown(&[&pair(&gone)])), None);
    }

    #[test]
    fn what_nobody_has_given_out_is_no_session() {
        let cookies = Cookies::new(false, 7421, &[b"secret"]);
        let own = pair(&cookies.new_session().unwrap().0);
        assert!(own.starts_with("forebay_7421="), "{own}");
        for index in "forebay_7421=".len()..own.len() {
            let mut changed = own.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            assert_eq!(cookies.session(&shown(&[str::from_utf8(&changed).unwrap()])), None, "{index}");
        }
        assert!(cookies.session(&shown(&[&own])).is_some());
        let others = [Cookies::new(false, 7421, &[b"other"]), Cookies::new(false, 7422, &[b"secret"])];
        assert!(others.iter().all(|other| other.session(&shown(&[&own])).is_none()));
        // The cookie of a login opens nothing.
        let (login, bound) = cookies.new_login().unwrap();
        let login = pair(&login);
        assert_eq!(cookies.login(&shown(&[&login])), Some(bound));
        assert_eq!(cookies.session(&shown(&[&login.replace("_login", "")])), None);
        for wrong in ["forebay_7421_login=", "forebay_7421_login=AAAA", "forebay_7421_login=%%%%"] {
            assert_eq!(cookies.login(&shown(&[wrong])), None);
        }
    }
}
