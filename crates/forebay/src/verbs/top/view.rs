//! State of the view, and how keys change it.

use forebay_types::filter::quoted;

use super::keys::Key;

/// The orders, as the server has them. `s` goes to the next.
const ORDERS: [&str; 6] = ["-oldest", "-ready", "-leased", "-scheduled", "-dead", "name"];
/// A name is not longer.
const FILTER_BYTES_MAX: usize = 200;

/// Choices of the user: the topics, their order and the filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The topics of all namespaces.
    all_namespaces: bool,
    /// The place of the order.
    order: usize,
    /// A part of each shown name.
    filter: String,
    /// The filter is being typed.
    typing: bool,
    /// The name of the chosen topic.
    chosen: Option<String>,
    /// One topic is shown.
    open: Option<String>,
    /// Nothing is asked.
    held: bool,
}

/// Effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Another frame of what is known.
    Draw,
    /// Something else is to be asked for, at once.
    Ask,
    /// The end.
    Quit,
}

impl View {
    /// All topics, the oldest first.
    pub fn new(all_namespaces: bool) -> Self {
        Self { all_namespaces, ..Self::default() }
    }

    /// Whether the topics of all namespaces are shown.
    pub fn all_namespaces(&self) -> bool {
        self.all_namespaces
    }

    /// The order.
    pub fn order(&self) -> &'static str {
        ORDERS[self.order]
    }

    /// The filter, as the server has them.
    pub fn query(&self) -> String {
        if self.filter.is_empty() { String::new() } else { format!("topic : {}", quoted(&self.filter)) }
    }

    /// The topic that is shown alone.
    pub fn open(&self) -> Option<&str> {
        self.open.as_deref()
    }

    /// Whether nothing is asked.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Describes the view in one line.
    pub fn describe(&self) -> String {
        let mut parts = match &self.open {
            Some(topic) => vec![format!("topic {topic}")],
            None => vec![format!("by {}", self.order().trim_start_matches('-'))],
        };
        if self.typing || !self.filter.is_empty() {
            parts.push(format!("/{}{}", self.filter, if self.typing { "_" } else { "" }));
        }
        if self.held {
            parts.push("HELD".to_owned());
        }
        parts.join("  ")
    }

    /// The place of the chosen topic, if it is there.
    pub fn marked(&self, names: &[String]) -> Option<usize> {
        let chosen = self.chosen.as_ref().filter(|_| self.open.is_none())?;
        names.iter().position(|name| name == chosen)
    }

    /// Takes a key. `names`: the topics on the screen.
    pub fn press(&mut self, key: Key, names: &[String]) -> Then {
        match key {
            Key::End => return Then::Quit,
            _ if self.typing => return self.type_key(key),
            Key::Char('q') => return Then::Quit,
            Key::Char(' ') => self.held = !self.held,
            Key::Escape if self.open.take().is_some() => return Then::Ask,
            Key::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                return Then::Ask;
            }
            // The others are about the list.
            _ if self.open.is_some() => {}
            Key::Char('s') => {
                self.order = (self.order + 1) % ORDERS.len();
                return Then::Ask;
            }
            Key::Char('/') => self.typing = true,
            Key::Down | Key::Char('j') => self.choose(names, 1),
            Key::Up | Key::Char('k') => self.choose(names, -1),
            // A topic of another namespace would need another client.
            Key::Enter if !self.all_namespaces => {
                self.open = self.marked(names).or(Some(0)).and_then(|place| names.get(place)).cloned();
                return Then::Ask;
            }
            _ => {}
        }
        Then::Draw
    }

    /// A key of the filter. Names have no other characters, and the server would refuse them.
    fn type_key(&mut self, key: Key) -> Then {
        match key {
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Char(c) if c.is_ascii_alphanumeric() || "._:/-".contains(c) => {
                if self.filter.len() < FILTER_BYTES_MAX {
                    self.filter.push(c);
                }
            }
            _ => return Then::Draw,
        }
        Then::Ask
    }

    fn choose(&mut self, names: &[String], step: isize) {
        let last = names.len().saturating_sub(1);
        let place = match self.marked(names) {
            Some(place) => place.saturating_add_signed(step).min(last),
            None => 0,
        };
        self.chosen = names.get(place).cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    fn press(view: &mut View, keys: &str) -> Then {
        keys.chars().map(|c| view.press(Key::Char(c), &names())).last().unwrap()
    }

    #[test]
    fn keys_sort_filter_hold_and_quit() {
        let mut view = View::new(false);
        assert_eq!((view.order(), press(&mut view, "s"), view.order()), ("-oldest", Then::Ask, "-ready"));
        assert_eq!((0..6).map(|_| press(&mut view, "s")).count(), 6);
        assert_eq!(view.order(), "-ready");
        assert_eq!((press(&mut view, " "), view.is_held()), (Then::Draw, true));
        // Within the filter keys are letters, and what no name has is left out.
        assert_eq!(press(&mut view, "/qs\" \u{1b}"), Then::Draw);
        assert_eq!(
            (view.query().as_str(), view.describe().as_str()),
            ("topic : \"qs\"", "by ready  /qs_  HELD")
        );
        view.press(Key::Backspace, &[]);
        assert_eq!(view.press(Key::Enter, &[]), Then::Ask);
        assert_eq!((view.query().as_str(), press(&mut view, "q")), ("topic : \"q\"", Then::Quit));
        assert_eq!((view.press(Key::Escape, &[]), view.query().as_str()), (Then::Ask, ""));
        assert_eq!(view.press(Key::End, &[]), Then::Quit);
    }

    #[test]
    fn the_choice_stays_with_the_topic() {
        let mut view = View::new(false);
        assert_eq!(view.marked(&names()), None);
        press(&mut view, "jj");
        assert_eq!(view.marked(&names()), Some(1));
        let moved = ["b", "x"].map(str::to_owned);
        assert_eq!(view.marked(&moved), Some(0));
        press(&mut view, "jjjj");
        assert_eq!(view.marked(&names()), Some(2));
        view.press(Key::Up, &names());
        assert_eq!((view.press(Key::Enter, &names()), view.open()), (Then::Ask, Some("b")));
        assert_eq!((press(&mut view, "s"), view.order()), (Then::Draw, "-oldest"));
        assert_eq!((view.press(Key::Escape, &names()), view.open()), (Then::Ask, None));
        view.press(Key::Enter, &[]);
        assert_eq!(view.open(), None, "there is none");
    }
}
