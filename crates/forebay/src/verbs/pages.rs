//! Lists that come in pages.

use forebay_client::Error;

/// Entries of one page: a larger page is not given.
const PAGE_MAX: u32 = 1_000;

/// Asks for page after page, until there are no more or `limit` entries are there. `ask` is told how many
/// entries the page may have and which page it is, and returns the entries with the token of the next page.
/// Returns the entries, and the token of the page behind them: empty if there is none.
pub async fn collect<T>(
    limit: u32,
    mut ask: impl AsyncFnMut(u32, String) -> Result<(Vec<T>, String), Error>,
) -> Result<(Vec<T>, String), Error> {
    let mut entries: Vec<T> = Vec::new();
    let mut token = String::new();
    loop {
        let left = limit.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok((entries, token));
        }
        let (page, next) = ask(left.min(PAGE_MAX), token).await?;
        entries.extend(page);
        if next.is_empty() {
            return Ok((entries, next));
        }
        token = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2,500 entries. A page has no more than 900, and the token is where it begins.
    async fn page(size: u32, token: String) -> Result<(Vec<u32>, String), Error> {
        let from = token.parse().unwrap_or(0);
        let to = (from + size.min(900)).min(2_500);
        Ok(((from..to).collect(), if to < 2_500 { to.to_string() } else { String::new() }))
    }

    #[tokio::test]
    async fn pages_are_asked_for_until_there_are_enough_entries() {
        for (limit, count, next) in
            [(0, 0, ""), (10, 10, "10"), (2_000, 2_000, "2000"), (2_500, 2_500, ""), (9_999, 2_500, "")]
        {
            let (entries, token) = collect(limit, page).await.unwrap();
            assert_eq!((entries, token.as_str()), ((0..count).collect(), next), "{limit}");
        }
    }
}
