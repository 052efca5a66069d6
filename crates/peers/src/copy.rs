//! The copy of the catalog that a node keeps in a file: sends it to a node that starts, and asks another one
//! for it.

use std::{io, path::Path, time::Duration};

use bytes::{Bytes, BytesMut};
use forebay_proto::peer::{CopyCatalogRequest, CopyCatalogResponse};
use futures_util::{Stream, stream};
use tokio::{fs::File, io::AsyncReadExt as _};
use tonic::{Response, Status, Streaming};

use crate::{channels::Client, links::PeerLinks};

/// How much of the file is in memory at one time.
const PART_BYTES: usize = 256 << 10;
/// A larger copy is not taken: the rows of a catalog at all of its bounds have 85 MiB.
const COPY_BYTES_MAX: usize = 512 << 20;
/// How long another node may take to send its copy.
const COPY_TIMEOUT: Duration = Duration::from_secs(10);

/// The file, part by part.
pub async fn copy_catalog(
    file: Option<&Path>,
) -> Result<impl Stream<Item = Result<CopyCatalogResponse, Status>> + Send + 'static, Status> {
    let none = || Status::not_found("this node keeps no copy of the catalog (catalog.copy_file)");
    let file = File::open(file.ok_or_else(none)?).await.map_err(|error| failed(&error))?;
    Ok(stream::try_unfold(file, async |mut file| {
        let mut part = BytesMut::with_capacity(PART_BYTES);
        match file.read_buf(&mut part).await.map_err(|error| failed(&error))? {
            0 => Ok(None),
            _ => Ok(Some((CopyCatalogResponse { bytes: part.freeze() }, file))),
        }
    }))
}

fn failed(error: &io::Error) -> Status {
    Status::not_found(format!("the copy of the catalog can't be read: {error}"))
}

impl PeerLinks {
    /// The copy of the catalog that another node keeps. `None`: it has none, or has not sent it in time.
    pub async fn copy_catalog(&self, address: &str) -> Option<Vec<u8>> {
        let link = self.bulk(address)?;
        let copied = async {
            let (_, mut client): (_, Client) = link.client().await.ok()?;
            let answer = client.copy_catalog(CopyCatalogRequest {}).await;
            collect(answer.map(Response::into_inner).ok()?).await
        };
        tokio::time::timeout(COPY_TIMEOUT, copied).await.ok().flatten()
    }
}

async fn collect(mut parts: Streaming<CopyCatalogResponse>) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    while let Some(CopyCatalogResponse { bytes }) = parts.message().await.ok()? {
        let bytes: Bytes = bytes;
        if copy.len() + bytes.len() > COPY_BYTES_MAX {
            return None;
        }
        copy.extend_from_slice(&bytes);
    }
    Some(copy)
}
