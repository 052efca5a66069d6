//! The network namespaces of a random walk. A lost packet is dropped where it arrives, and nobody is told.
//!
//! The test itself runs in a namespace of its own, that of the clients, which holds the bridge between all
//! others. The kernel removes all of them when the last of their processes has ended, however that comes.

use std::process::Command;

use forebay_testkit::servers::Place;

use super::plan::{Link, NODES, PacketLoss, SERVERS, Step};

/// The network of all hosts.
const NETWORK: &str = "10.99.0";
/// Clients are here, beside the bridge.
const CLIENTS: &str = "10.99.0.254";
/// The first server answers here too, for the catalog.
const CATALOG: &str = "10.99.0.100";
/// Drops the packets whose source and target are in a set.
const RULES: &str = r#"table ip walk {
    set lost { type ipv4_addr . ipv4_addr ; }
    counter dropped { }
    chain arriving {
        type filter hook input priority 0 ; policy accept ;
        ip saddr . ip daddr @lost counter name "dropped" drop ;
    }
}
"#;

/// The hosts.
pub struct Namespaces(());

/// The name of a node's namespace.
fn node(number: usize) -> String {
    format!("node{number}")
}

/// The name of a server's namespace.
fn server(number: usize) -> String {
    format!("server{number}")
}

fn node_address(number: usize) -> String {
    format!("{NETWORK}.{}", 1 + number)
}

fn server_address(number: usize) -> String {
    format!("{NETWORK}.{}", 101 + number)
}

/// Runs a command. Panics with its errors if it fails.
fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", words.join(" ")));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", words.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command in a namespace, or in that of the test. Returns what it prints.
fn run_in(namespace: Option<&str>, words: &[&str]) -> String {
    match namespace {
        Some(namespace) => run(&[&["ip", "netns", "exec", namespace], words].concat()),
        None => run(words),
    }
}

/// A place in a namespace. `ip` becomes the command that it runs.
fn place(namespace: String, host: String) -> Place {
    let before = ["ip", "netns", "exec", &namespace].map(str::to_owned).to_vec();
    Place { before, host }
}

impl Namespaces {
    /// All hosts, joined by a bridge.
    pub fn new() -> Self {
        let interfaces = run(&["ip", "-o", "link", "show", "up"]);
        assert_eq!(
            interfaces.lines().count(),
            1,
            "not in a network of its own: run `cargo xtask soak --netns --minutes N`\n{interfaces}"
        );
        run(&["ip", "link", "add", "hub", "type", "bridge"]);
        run(&["ip", "addr", "add", &format!("{CLIENTS}/24"), "dev", "hub"]);
        run(&["ip", "link", "set", "hub", "up"]);
        rules(None);
        for number in 0..NODES {
            host(&node(number), &[&node_address(number)]);
        }
        for number in 0..SERVERS {
            let addresses = [&server_address(number), CATALOG];
            host(&server(number), if number == 0 { &addresses } else { &addresses[..1] });
        }
        Self(())
    }

    /// Where a node runs.
    pub fn node(&self, number: usize) -> Place {
        place(node(number), node_address(number))
    }

    /// Where a server runs.
    pub fn server(&self, number: usize) -> Place {
        place(server(number), server_address(number))
    }

    /// The URL of a database on the first server, at the catalog's own address.
    pub fn catalog(&self, url: &str) -> String {
        url.replace(&server_address(0), CATALOG)
    }

    /// Begins a fault. One that is not about packets does nothing here.
    pub fn begin(&self, step: Step) {
        if let Step::Lose(link, lost) = step {
            lose(link, lost);
        }
    }

    /// Ends all faults. Returns how many packets were lost.
    pub fn heal(&self) -> u64 {
        let hosts = (0..NODES).map(node).chain((0..SERVERS).map(server)).map(Some).chain([None]);
        let lost = hosts.map(|name| {
            run_in(name.as_deref(), &["nft", "flush", "set", "ip", "walk", "lost"]);
            let counted = run_in(name.as_deref(), &["nft", "reset", "counter", "ip", "walk", "dropped"]);
            let mut words = counted.split_whitespace().skip_while(|word| *word != "packets");
            words.nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number of packets")
        });
        lost.sum()
    }
}

/// A namespace with these addresses, on the bridge.
fn host(name: &str, addresses: &[&str]) {
    run(&["ip", "netns", "add", name]);
    run(&["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name]);
    run(&["ip", "link", "set", name, "master", "hub", "up"]);
    for address in addresses {
        run(&["ip", "-n", name, "addr", "add", &format!("{address}/24"), "dev", "eth0"]);
    }
    run(&["ip", "-n", name, "link", "set", "lo", "up"]);
    run(&["ip", "-n", name, "link", "set", "eth0", "up"]);
    rules(Some(name));
}

fn rules(namespace: Option<&str>) {
    let file = std::env::temp_dir().join(format!("forebay-walk-{}.nft", std::process::id()));
    std::fs::write(&file, RULES).unwrap();
    run_in(namespace, &["nft", "-f", &file.display().to_string()]);
    std::fs::remove_file(file).unwrap();
}

/// The namespace and the address of each other side of a link.
fn others(link: Link) -> Vec<(Option<String>, String)> {
    match link {
        Link::Server(_, number) => vec![(Some(server(number)), server_address(number))],
        Link::Catalog(_) => vec![(Some(server(0)), CATALOG.to_owned())],
        Link::Clients(_) => vec![(None, CLIENTS.to_owned())],
        Link::Peers(own) => {
            let others = (0..NODES).filter(|number| *number != own);
            others.map(|number| (Some(node(number)), node_address(number))).collect()
        }
    }
}

/// From now on these packets are dropped where they arrive.
fn lose(link: Link, lost: PacketLoss) {
    let (Link::Server(own, _) | Link::Catalog(own) | Link::Peers(own) | Link::Clients(own)) = link;
    let drop = |namespace: Option<&str>, from: &str, to: &str| {
        let pair = format!("{{ {from} . {to} }}");
        run_in(namespace, &["nft", "add", "element", "ip", "walk", "lost", &pair]);
    };
    let (name, address) = (node(own), node_address(own));
    for (other, other_address) in others(link) {
        if lost != PacketLoss::FromNode {
            drop(Some(&name), &other_address, &address);
        }
        if lost != PacketLoss::ToNode {
            drop(other.as_deref(), &address, &other_address);
        }
    }
}
