//! Which other nodes' items come to the consumers of this one.

use forebay_types::Monotonic;

use super::{Core, peer_loads::Program};
use crate::api::MissingSource;

impl Core {
    /// The nodes whose items come here.
    pub fn givers(&self) -> Vec<String> {
        let nodes = self.peer_loads.nodes();
        let givers =
            nodes.filter(|(address, program)| *program == Program::Present && self.remote.is_linked(address));
        givers.map(|(address, _)| address.to_owned()).collect()
    }

    /// The nodes whose items do not come here.
    pub fn missing_sources(&self, at: Monotonic) -> Vec<MissingSource> {
        let missing = self.peer_loads.nodes().filter_map(|(address, program)| {
            let why = match program {
                Program::Older => "its program is of an earlier release",
                Program::Present if !self.remote.is_linked(address) => "it does not tell of its shards",
                Program::Present if self.remote.is_late(address, at) => "it answers late",
                // A node that has just started is not reached at first.
                Program::Present | Program::Unknown => return None,
            };
            Some(MissingSource { address: address.to_owned(), why: why.into() })
        });
        missing.collect()
    }
}
