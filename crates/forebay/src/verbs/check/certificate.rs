//! `forebay check certificate`

use std::{io, time::Duration};

use clap::Args;
use forebay_client::{Timestamp, Tls, explain_tls};
use forebay_edge::tls::end_of_certificate;
use forebay_types::{Clock as _, SystemClock};
use futures_util::future::join_all;
use tokio::{net::TcpStream, time::timeout};

use super::{
    figures::{Bad, Spec, Unit},
    flags::CheckFlags,
    report::CheckedObject,
};
use crate::failure::Failure;

/// How long a handshake may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Figures that are compared.
pub const FIGURES: &[Spec] =
    &[Spec { name: "days", unit: Unit::Days, bad: Bad::Below, usual: [Some(14.0), Some(3.0)] }];

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay check certificate --addr https://queue1:7420,https://queue2:7420 --ca ca.crt
  forebay check certificate --addr https://queue1:7421 --ca ca.crt --warn days=30 --critical days=7

Looks at the certificate that each address shows, of gRPC or HTTP ports. Figure: the days until the first
of them ends, a warning below 14 and critical below 3 unless told otherwise. A certificate that is not
accepted for another reason than its end is unknown, with the reason.
Exit status: 0 fine, 1 warning, 2 critical, 3 unknown.")]
pub struct Certificate {
    /// Flags that all checks share.
    #[command(flatten)]
    pub checking: CheckFlags,
}

/// Begins TLS with each address.
pub async fn look(flags: &Certificate) -> Result<CheckedObject, Failure> {
    let config = flags.checking.connection.servers.config()?;
    let tls = Tls::new(&config.tls).map_err(|error| Failure::usage(error.message()))?;
    let has_tls = config.tls != Default::default();
    let ends = join_all(config.endpoints.iter().map(async |addr| {
        let host_port = match addr.split_once("://") {
            Some(("https", rest)) => rest.trim_end_matches('/'),
            None if has_tls => addr,
            _ => return Err(Failure::new(format!("{addr} has no TLS; write https://"))),
        };
        let (end, accepted) = end_at(&tls, host_port).await?;
        Ok((end, host_port, accepted))
    }));
    let ends = ends.await.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    let now = SystemClock::default().wall();
    // An address is always given.
    let (end, addr, _) =
        ends.iter().min_by_key(|(end, ..)| *end).ok_or_else(|| Failure::new("no address"))?;
    let micros = end.as_micros().saturating_sub(now.as_micros());
    // Whether one that has ended is accepted is no question.
    let refused = ends.iter().filter(|(end, ..)| *end > now).find_map(|(.., accepted)| accepted.clone());
    Ok(CheckedObject {
        target: (*addr).to_owned(),
        labels: vec![("address", (*addr).to_owned())],
        values: vec![micros as f64 / 86_400e6],
        in_doubt: refused,
    })
}

/// When the certificate of an address ends, and why it is not accepted.
async fn end_at(tls: &Tls, addr: &str) -> Result<(Timestamp, Option<String>), Failure> {
    let unreachable = |why: String| Failure::new(format!("cannot reach {addr}: {why}"));
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    let exchange = async {
        let stream = TcpStream::connect(addr).await?;
        io::Result::Ok(tls.shown_certificate(stream, host).await)
    };
    let (shown, end) = match timeout(TIMEOUT, exchange).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => return Err(unreachable(error.to_string())),
        Err(_) => return Err(unreachable("no answer".to_owned())),
    };
    let why = end.err().map(|error| explain_tls(addr, &error).unwrap_or_else(|| error.to_string()));
    match shown {
        Some(der) => match end_of_certificate(&der) {
            Some(end) => Ok((end, why)),
            None => Err(Failure::new(format!("the certificate of {addr} can't be read"))),
        },
        None => Err(Failure::new(why.unwrap_or_else(|| format!("{addr} shows no certificate")))),
    }
}
