//! The content of one module: its children, the names it defines, its imports and the paths it
//! uses.
//!
//! A module is a file, or a block `mod name { .. }` inside one. `syn` visits each of its items
//! once, O(n). The input of a macro is read as tokens: names with `::` between them are a path.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Ident, Item, ItemMacro, ItemMod, ItemUse, Macro, UseTree, Visibility};

use super::without_comments;

/// The segments of a path, as written: `["super", "table", "Table"]`.
pub(super) type Path = Vec<String>;

/// A module, as its own text describes it.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Names of the modules declared with `mod name;`, which have files of their own.
    pub(super) declared: BTreeSet<String>,
    /// Modules with a body: `mod name { .. }`.
    pub(super) blocks: BTreeMap<String, Scope>,
    /// Names of the items and macros defined here.
    pub(super) defined: BTreeSet<String>,
    /// Imported names.
    pub(super) imports: BTreeMap<String, Import>,
    /// Paths imported with `::*`.
    pub(super) globs: Vec<Path>,
    /// Paths of two segments or more outside imports.
    pub(super) paths: BTreeSet<Path>,
    /// Words outside imports.
    pub(super) words: BTreeSet<String>,
    /// Names of the macros called without a path.
    pub(super) calls: BTreeSet<String>,
    /// Names of macros defined with `macro_rules!`.
    pub(super) macros: BTreeSet<String>,
}

/// The target of an imported name.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Path,
    /// Whether the import is a re-export: `pub use`, `pub(crate) use`.
    pub(super) public: bool,
}

/// Reads the text of a file. Test code is left out.
pub(super) fn read(text: &str) -> Scope {
    let file = syn::parse2::<syn::File>(without_comments(text, false));
    Scope::of(&file.unwrap_or_else(|error| panic!("{error} in a file:\n{text}")).items)
}

/// The name that an item defines.
fn name_of(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    })
}

impl Scope {
    fn of(items: &[Item]) -> Self {
        let mut scope = Self::default();
        for item in items {
            scope.defined.extend(name_of(item).map(Ident::to_string));
            scope.visit_item(item);
        }
        scope
    }

    /// One tree of imports below a prefix.
    fn import(&mut self, mut prefix: Path, tree: &UseTree, public: bool) {
        let (end, name) = match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                return self.import(prefix, &path.tree, public);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(prefix.clone(), tree, public));
            }
            UseTree::Glob(_) => return self.globs.push(prefix),
            UseTree::Name(end) => (&end.ident, None),
            UseTree::Rename(end) => (&end.ident, Some(end.rename.to_string())),
        };
        if prefix.is_empty() || end != "self" {
            prefix.push(end.to_string());
        }
        let name = match name {
            None => prefix[prefix.len() - 1].clone(),
            Some(name) if name == "_" => format!("_ as {}", prefix.join("::")),
            Some(name) => name,
        };
        self.imports.insert(name, Import { path: prefix, public });
    }

    /// The input of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Path::new(), 0);
        for tree in tokens {
            match tree {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end(take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                // One that is not behind a name belongs to no path of ours.
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    path.extend(path.is_empty().then(String::new));
                    colons += 1;
                }
                other => {
                    if other.to_string() == "!" && path.len() == 1 {
                        self.calls.insert(path[0].clone());
                    }
                    self.end(take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(path);
    }

    fn end(&mut self, path: Path) {
        self.words.extend(path.iter().cloned());
        if path.len() > 1 {
            self.paths.insert(path);
        }
    }
}

impl Visit<'_> for Scope {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        let name = module.ident.to_string();
        match &module.content {
            None => drop(self.declared.insert(name)),
            Some((_, items)) => drop(self.blocks.insert(name, Self::of(items))),
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        let public = !matches!(item.vis, Visibility::Inherited);
        self.import(Path::new(), &item.tree, public);
    }

    fn visit_item_macro(&mut self, item: &ItemMacro) {
        self.macros.extend(item.ident.as_ref().map(Ident::to_string));
        visit::visit_item_macro(self, item);
    }

    fn visit_macro(&mut self, call: &Macro) {
        self.calls.extend(call.path.get_ident().map(Ident::to_string));
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &syn::MetaList) {
        self.tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        self.end(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_ident(&mut self, name: &Ident) {
        self.words.insert(name.to_string());
    }
}
