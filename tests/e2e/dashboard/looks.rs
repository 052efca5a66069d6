//! How pages look: on a telephone, in the dark, by keyboard, and for eyes that see little contrast.

use serde_json::Value;

use super::{
    NAMESPACE, Stage,
    chromium::{Chromium, Looks},
};

/// Texts whose contrast with what lies behind them is less than 4.5, as WCAG 2.1 computes it (1.4.3).
const FAINT: &str = r#"
const parse = (text) => {
  const parts = text.match(/[\d.]+/g).map(Number);
  return { r: parts[0], g: parts[1], b: parts[2], a: parts.length > 3 ? parts[3] : 1 };
};
const over = (top, below) => ({
  r: top.r * top.a + below.r * (1 - top.a),
  g: top.g * top.a + below.g * (1 - top.a),
  b: top.b * top.a + below.b * (1 - top.a),
  a: 1,
});
const light = (color) => {
  const part = (value) => {
    const scaled = value / 255;
    return scaled <= 0.03928 ? scaled / 12.92 : ((scaled + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(color.r) + 0.7152 * part(color.g) + 0.0722 * part(color.b);
};
const behind = (element) => {
  let layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
};
const faint = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
  const box = element.getBoundingClientRect();
  if (!own || box.width === 0 || box.right < 0) continue;
  const below = behind(element);
  const text = over(parse(getComputedStyle(element).color), below);
  const [high, low] = [light(text), light(below)].sort((a, b) => b - a);
  const contrast = (high + 0.05) / (low + 0.05);
  const text40 = element.textContent.trim().slice(0, 40);
  if (contrast < 4.5) faint.push(element.tagName + " " + text40 + " " + contrast.toFixed(2));
}
return faint;
"#;

/// Controls that a keyboard should reach, and whether it does.
const CONTROLS: &str = r#"
const seen = (element) => element.checkVisibility() && element.type !== "hidden";
const all = document.querySelectorAll("a[href], button, input, select, textarea, summary");
return [...all].filter(seen).map((element) => {
  const label = element.closest("label") || element.getAttribute("aria-label") || element.textContent.trim();
  element.focus();
  const focused = document.activeElement === element;
  return { tag: element.outerHTML.slice(0, 120), focused, labelled: Boolean(label) };
});
"#;

/// Rows of lists that are no cards, or have cells that do not fit in the screen.
const NO_CARDS: &str = r#"
const rows = [...document.querySelectorAll(".list tbody tr")];
const fits = (element) => element.getBoundingClientRect().right <= innerWidth;
const isCard = (row) => getComputedStyle(row).display === "flex" && [row, ...row.cells].every(fits);
return rows.filter((row) => !isCard(row)).map((row) => row.textContent);
"#;

#[tokio::test]
async fn pages_fit_a_telephone() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { narrow: true, ..Looks::default() }).await;
    for (name, page) in stage.pages() {
        stage.open(&browser, &page).await;
        let width = browser.run("return [innerWidth, document.documentElement.scrollWidth]").await;
        assert_eq!(width[0], 390, "{name}");
        assert_eq!(width[1], 390, "{name} is wider than the screen");
        let odd = browser.run(NO_CARDS).await;
        assert_eq!(odd, Value::Array(Vec::new()), "{name}");
        browser.picture(&format!("{name}-narrow")).await;
    }
}

#[tokio::test]
async fn topics_are_cards_of_what_matters_most_on_a_telephone() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { narrow: true, ..Looks::default() }).await;
    stage.open(&browser, "topics").await;
    let cells = browser
        .run(
            "const cells = [...document.querySelector('.list tbody tr').cells];
            return cells.filter((cell) => cell.checkVisibility()).map((cell) =>
                [cell.dataset.head || '', cell.textContent]);",
        )
        .await;
    let cells: Vec<(String, String)> = serde_json::from_value(cells).unwrap();
    let heads: Vec<&str> = cells.iter().map(|(head, _)| &**head).collect();
    assert_eq!(heads, ["in", "", "oldest", "ready", ""], "the others are on the topic's page");
    assert_eq!((&*cells[0].1, &*cells[1].1, &*cells[3].1), ("shop", "mail", "1"));
    assert_eq!(browser.run("return document.querySelector('.list thead').checkVisibility()").await, false);
}

#[tokio::test]
async fn what_is_done_with_chosen_rows_stays_in_sight_on_a_telephone() {
    let stage = Stage::start().await;
    let mut last = String::new();
    for number in 0..20 {
        last = stage.enqueue("many", &number.to_string(), None).await;
    }
    let browser = Chromium::start(Looks { narrow: true, ..Looks::default() }).await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=many")).await;
    let place = || browser.run("return document.getElementById('chosen').getBoundingClientRect().bottom");
    assert!(place().await.as_f64().unwrap() > 844.0, "it is above the list");
    browser.mark(&last).await;
    assert_eq!(place().await, 844, "below, wherever one is");
    browser.picture("chosen-narrow").await;
    browser.click("Cancel…").await;
    browser.until_shown("1 item is deleted.").await;
}

#[tokio::test]
async fn the_head_is_one_line() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    for (name, page) in stage.pages() {
        stage.open(&browser, &page).await;
        assert!(browser.has("header select[name=theme]").await, "{name}");
        let script = "return [innerWidth, document.querySelector('header').offsetHeight]";
        let size = browser.run(script).await;
        assert!(size[0] == 1_280 && size[1].as_u64().unwrap() < 60, "{name}: {size}");
    }
}

#[tokio::test]
async fn every_text_stands_out() {
    let stage = Stage::start().await;
    for dark in [false, true] {
        let browser = Chromium::start(Looks { dark, ..Looks::default() }).await;
        for (name, page) in stage.pages() {
            stage.open(&browser, &page).await;
            let prefers = browser.run("return matchMedia('(prefers-color-scheme: dark)').matches").await;
            assert_eq!(prefers, dark);
            let faint = browser.run(FAINT).await;
            assert_eq!(faint, Value::Array(Vec::new()), "{name}, dark: {dark}");
            browser.picture(&format!("{name}-{}", if dark { "dark" } else { "light" })).await;
        }
    }
}

#[tokio::test]
async fn a_keyboard_reaches_everything() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    for (name, page) in stage.pages() {
        stage.open(&browser, &page).await;
        let controls = browser.run(CONTROLS).await;
        let controls = controls.as_array().unwrap();
        assert!(controls.len() > 5, "{name}: {controls:?}");
        for control in controls {
            assert!(control["focused"] == true && control["labelled"] == true, "{name}: {control}");
        }
    }
    // The keys of a page.
    stage.open(&browser, "").await;
    browser.run("document.body.focus()").await;
    let body = browser.client.find(fantoccini::Locator::Css("body")).await.unwrap();
    body.send_keys("/").await.unwrap();
    assert_eq!(browser.run("return document.activeElement.name").await, "q");
}

#[tokio::test]
async fn a_theme_is_chosen_and_kept() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks::default()).await;
    let background = || browser.run("return getComputedStyle(document.body).backgroundColor");
    let (light, dark) = ("rgb(255, 255, 255)", "rgb(20, 23, 28)");
    stage.open(&browser, "topics").await;
    assert_eq!(background().await, light, "the system's");
    browser.choose("select[name=theme]", "dark").await;
    assert_eq!(background().await, dark, "at once");
    for (name, page) in stage.pages() {
        stage.open(&browser, &page).await;
        assert_eq!(background().await, dark, "{name}");
        assert_eq!(browser.run("return document.querySelector('select[name=theme]').value").await, "dark");
        let faint = browser.run(FAINT).await;
        assert_eq!(faint, Value::Array(Vec::new()), "{name}");
    }
    browser.picture("theme-dark").await;
    browser.choose("select[name=theme]", "system").await;
    assert_eq!(background().await, light);
    browser.client.refresh().await.unwrap();
    assert_eq!(background().await, light);
    // The other way round: light where the system is dark.
    let browser = Chromium::start(Looks { dark: true, ..Looks::default() }).await;
    let background = || browser.run("return getComputedStyle(document.body).backgroundColor");
    stage.open(&browser, "topics").await;
    assert_eq!(background().await, dark);
    browser.choose("select[name=theme]", "light").await;
    stage.open(&browser, "nodes").await;
    assert_eq!(background().await, light);
}
