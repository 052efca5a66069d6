//! Additions to the scripts of shells: they ask this program for names first, and complete as ever if there
//! are none. The added parts know nothing of the verbs, so they need no change with them.

use clap_complete::Shell;

/// Returns the part that is added behind the script of a shell.
pub fn of(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        _ => "",
    }
}

/// A word with a colon is several to bash, so it is completed as ever.
const BASH: &str = r#"
_forebay_names() {
    local IFS=$'\n' names
    names=$("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ -n "$names" ]]; then
        COMPREPLY=($names)
    else
        unset IFS
        _forebay "$@"
    fi
}

complete -F _forebay_names -o bashdefault -o default forebay
"#;

const ZSH: &str = r#"
_forebay_names() {
    local -a names
    names=(${(f)"$(${words[1]} __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#names )); then
        compadd -- $names
    else
        _forebay "$@"
    fi
}

compdef _forebay_names forebay
"#;

const FISH: &str = r#"
function __forebay_names
    forebay __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end

complete -c forebay -a '(__forebay_names)'
for option in topic to-topic namespace context
    complete -c forebay -l $option -r -a '(__forebay_names)'
end
"#;
