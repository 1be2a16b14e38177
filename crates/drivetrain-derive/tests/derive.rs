//! The derive on types that are compiled and walked, against a stand-in for `drivetrain_nn` with the same shape.

use drivetrain_derive::Module;
use nn::{Leaf, Module};

/// As much of `drivetrain_nn` as the derive writes against.
mod nn {
    #[derive(Default)]
    pub struct Path(Vec<String>);

    impl Path {
        pub fn push(&mut self, name: &str) {
            self.0.push(name.to_owned());
        }
        pub fn pop(&mut self) {
            self.0.pop();
        }
    }

    pub trait Visitor {
        fn leaf(&mut self, name: &str);
    }

    pub trait Visit {
        fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor);
    }

    pub trait Module: Visit + Send + Sync {
        fn names(&self) -> Vec<String> {
            let mut names = Names(Vec::new());
            self.visit(&mut Path::default(), &mut names);
            names.0
        }
    }

    struct Names(Vec<String>);

    impl Visitor for Names {
        fn leaf(&mut self, name: &str) {
            self.0.push(name.to_owned());
        }
    }

    pub struct Leaf;

    impl Visit for Leaf {
        fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
            visitor.leaf(&path.0.join("."));
        }
    }

    impl<T: Visit> Visit for Vec<T> {
        fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
            for (index, item) in self.iter().enumerate() {
                path.push(&index.to_string());
                item.visit(path, visitor);
                path.pop();
            }
        }
    }
}

#[derive(Module)]
#[module(crate = "nn")]
struct Linear {
    weight: Leaf,
    #[module(rename = "offset")]
    bias: Leaf,
    #[module(skip)]
    _size: usize,
}

fn linear() -> Linear {
    Linear {
        weight: Leaf,
        bias: Leaf,
        _size: 3,
    }
}

#[derive(Module)]
#[module(crate = "nn")]
enum Block {
    Linear(#[module(flatten)] Linear),
    Pair { left: Leaf, right: Leaf },
    Nothing,
}

#[derive(Module)]
#[module(crate = "nn")]
struct Net<M, F> {
    layers: Vec<M>,
    #[module(skip)]
    _after: F,
    r#type: Leaf,
}

#[derive(Module)]
#[module(crate = "nn")]
struct Tuple(Leaf, #[module(skip)] std::marker::PhantomData<u8>, Linear);

#[derive(Module)]
#[module(crate = "nn")]
struct Unit;

#[test]
fn names_are_dotted_and_in_order() {
    let blocks = vec![
        Block::Linear(linear()),
        Block::Nothing,
        Block::Pair {
            left: Leaf,
            right: Leaf,
        },
    ];
    let net = Net {
        layers: blocks,
        _after: |x: f32| x + 1.0,
        r#type: Leaf,
    };
    assert_eq!(
        net.names(),
        [
            "layers.0.weight",
            "layers.0.offset",
            "layers.2.left",
            "layers.2.right",
            "type"
        ]
    );
    assert_eq!(
        Tuple(Leaf, std::marker::PhantomData, linear()).names(),
        ["0", "2.weight", "2.offset"]
    );
    assert!(Unit.names().is_empty());
}

#[test]
fn derived_modules_are_objects() {
    let modules: Vec<Box<dyn Module>> = vec![Box::new(linear()), Box::new(Unit)];
    assert_eq!(modules[0].names(), ["weight", "offset"]);
}
