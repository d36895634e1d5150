//! `koel check --url`.

use crate::support::Shell;

#[test]
fn a_line_is_selected_if_its_host_or_a_parent_domain_is_in_the_filter() {
    let shell = Shell::new();
    shell.build("set", &["bad.example".into(), "https://exact.example/page".into()], "--fpr 1e-9");
    let found = "https://bad.example/\nhttp://a.b.bad.example:8080/x?y\nsome@bad.example\nBAD.example\n\
                 sub.bad.example/path\nhttps://exact.example/page\n";
    let others = "https://notbad.example/\nhttps://bad.example.org/\nexample\nhttps://exact.example/other\n\n\
                  http://192.0.2.7/\ntwo words\n";
    let ran = shell.run_with("check --url set", (found.to_owned() + others).as_bytes());
    assert_eq!(ran.text(), found);
    let ran = shell.run_with("check --url -v set", (found.to_owned() + others).as_bytes());
    assert_eq!(ran.text(), others);
    let plain = shell.run_with("check set", found.as_bytes());
    assert_eq!(plain.text(), "https://exact.example/page\n");
}

#[test]
fn a_url_in_the_query_or_an_unknown_scheme_does_not_hide_the_host() {
    let shell = Shell::new();
    shell.build("set", &["bad.example".into()], "--fpr 1e-9");
    let found = "bad.example/go?to=https://good.example/\nuser@bad.example/x://y\n  a.bad.example#://\n\
                 git://BAD.example/tree\nhttps://bad.example/?u=http://good.example\n";
    let others = "good.example/go?to=https://bad.example/\nfile:///bad.example\n";
    let ran = shell.run_with("check --url set", (found.to_owned() + others).as_bytes());
    assert_eq!(ran.text(), found);
}
