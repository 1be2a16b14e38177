//! `simple_net` prints what it promises, and the same for the same seed.

#[allow(dead_code)]
#[path = "../simple_net.rs"]
mod simple_net;

use drivetrain_examples::Args;

fn output(args: &Args) -> String {
    let mut out = Vec::new();
    simple_net::run(args, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn prints_every_epoch_and_learns() {
    let args = Args {
        device: Some("cpu".to_string()),
        seed: 1,
        ..Args::default()
    };
    let text = output(&args);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 102, "{text}");
    assert_eq!(lines[0], "Using device: cpu");
    assert_eq!(lines[101], "Training finished!");
    let losses: Vec<f64> = (1..=100)
        .map(|epoch| {
            let loss = lines[epoch].strip_prefix(&format!("Epoch {epoch}/100, Loss: "));
            loss.unwrap().parse().unwrap()
        })
        .collect();
    assert!(losses.windows(2).all(|pair| pair[1] <= pair[0]), "{text}");
    assert!(losses[99] < 0.5 * losses[0], "{text}");
    assert_eq!(output(&args), text, "the same seed");
    assert_ne!(output(&Args { seed: 2, ..args }), text, "another seed");
}
