//! `forebay settings apply`, `forebay settings diff`

use std::{
    fs,
    io::{self, IsTerminal as _, Read},
    path::PathBuf,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use forebay_client::v1::{ApplySettingsRequest, ApplySettingsResponse, ExportSettingsResponse};

use super::differences;
use crate::{
    failure::Failure,
    output::{self, Format},
    parse,
    verbs::{bulk::confirm, connection::Connection},
};

/// The longest document. A call brings no more.
const BYTES_MAX: u64 = 16 << 20;

/// The flags of `forebay settings diff`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay settings diff settings.json --namespace -
  forebay settings diff settings.json --namespace shop --keep-others -o json")]
pub struct Diff {
    /// The document and its place.
    #[command(flatten)]
    document: Document,
}

/// The flags of `forebay settings apply`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay settings apply settings.json --namespace - --reason 'as agreed'
  forebay settings apply shop.json --namespace shop --keep-others --yes
  forebay settings export --namespace - | forebay settings apply - --context other --namespace - --yes")]
pub struct Apply {
    /// The document and its place.
    #[command(flatten)]
    document: Document,
    /// Why, for the log of the server
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    reason: String,
    /// Only show what would be changed
    #[arg(long)]
    dry_run: bool,
    /// Do it without a question
    #[arg(long)]
    yes: bool,
}

/// Document that is applied, and where.
#[derive(Args)]
struct Document {
    /// Server and namespace; `-`: all namespaces.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The file with the document, as `settings export` prints it; `-`: stdin
    file: PathBuf,
    /// Leave as it is what the document does not name
    #[arg(long)]
    keep_others: bool,
}

impl Document {
    fn read(&self) -> Result<ApplySettingsRequest, Failure> {
        let name = self.file.display();
        let text = match self.file.as_os_str() == "-" {
            true => text(io::stdin().lock()),
            false => fs::File::open(&self.file).map_err(anyhow::Error::from).and_then(text),
        }
        .with_context(|| format!("cannot read {name}"))?;
        let read: ExportSettingsResponse = output::from_json("ExportSettingsResponse", &text)
            .with_context(|| format!("{name} is not a document of settings"))?;
        if !read.next_page_token.is_empty() {
            let why =
                "is one page of several: its nextPageToken is set, and what is on the other pages is missing";
            return Err(Failure::new(format!("{name} {why}; `forebay settings export` prints all of them")));
        }
        let (entries, keep_others) = (read.entries, self.keep_others);
        Ok(ApplySettingsRequest { entries, keep_others, ..Default::default() })
    }

    /// Returns the changes that it would make.
    async fn differences(&self, document: ApplySettingsRequest) -> Result<ApplySettingsResponse, Failure> {
        self.apply(ApplySettingsRequest { dry_run: true, ..document }).await
    }

    /// Has a node apply it, in one change or not at all.
    async fn apply(&self, document: ApplySettingsRequest) -> Result<ApplySettingsResponse, Failure> {
        let client = self.connection.client().await?;
        let namespace = client.namespace().to_owned();
        Ok(client.ask(ApplySettingsRequest { namespace, ..document }).await?)
    }
}

/// All of a document. What is cut would lack entries, which would be removed then.
fn text(from: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= BYTES_MAX, "it has more than {BYTES_MAX} bytes");
    Ok(String::from_utf8(bytes)?)
}

impl Diff {
    /// Shows the differences.
    pub async fn run(self) -> Result<(), Failure> {
        let differences = self.document.differences(self.document.read()?).await?;
        differences::print(&differences, &self.document.format)
    }
}

impl Apply {
    /// Sets what the document says, once whoever sits at the terminal has said so. What was shown is what is
    /// done, or nothing.
    pub async fn run(self) -> Result<(), Failure> {
        let Self { document: flags, reason, dry_run, yes } = self;
        let is_asked = !dry_run && !yes;
        if is_asked && (!io::stdin().is_terminal() || flags.file.as_os_str() == "-") {
            let message = "this changes settings, and there is no terminal to ask: add --yes, or --dry-run";
            return Err(Failure::usage(message));
        }
        let document = flags.read()?;
        let would = flags.differences(document.clone()).await?;
        if dry_run || would.differences.is_empty() {
            return differences::print(&would, &flags.format);
        }
        if is_asked {
            let removed = would.differences.iter().filter(|it| it.after.is_none()).count();
            let changed = would.differences.len() - removed;
            confirm(&format!("Settings of {changed} names will be set, and those of {removed} removed."))?;
        }
        let document = ApplySettingsRequest { version: Some(would.version), reason, ..document };
        let applied = flags.apply(document).await?;
        differences::print(&applied, &flags.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_to_its_end_or_refused() {
        let longest = text(io::repeat(b' ').take(BYTES_MAX)).unwrap();
        assert_eq!(longest.len() as u64, BYTES_MAX);
        let refused = text(io::repeat(b' ').take(BYTES_MAX + 1)).unwrap_err();
        assert!(refused.to_string().contains("more than 16777216 bytes"), "{refused}");
        assert!(text(&b"\xff"[..]).is_err(), "no text");
    }
}
