//! `device_tour` answers each question, and what it says holds.

#[allow(dead_code)]
#[path = "../device_tour.rs"]
mod device_tour;

use drivetrain_examples::Args;

#[test]
fn every_question_is_answered() {
    let args = Args {
        device: Some("cpu".to_string()),
        ..Args::default()
    };
    let mut out = Vec::new();
    device_tour::run(&args, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("Using device: cpu\nThe tour's other device: "));
    let other = text.lines().nth(1).unwrap().rsplit(' ').next().unwrap();
    for line in [
        "x.len() -> 5".to_string(),
        "operations that the device ran for these -> 0".to_string(),
        "devices of a Vec<Tensor> -> cpu, cpu, cpu".to_string(),
        "-> [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]]".to_string(),
        "to_vec::<f32>()? of each, numbers on the host -> 3".to_string(),
        "and it is a view, no copy -> true".to_string(),
        "x.index_select(0, &ids)?.device() -> cpu".to_string(),
        "a number on the host -> 6".to_string(),
        format!("then model.to(&there)?, its weight -> {other}"),
        "an optimizer made before the move trains it -> true".to_string(),
        "operand 0 [1, 4] is on cpu".to_string(),
        format!("is on {other}; help: move one with .to(&device)?"),
        "x.cpu()?.device() -> cpu".to_string(),
        format!("device='{other}')"),
        "x.to(&here)?.to(&here)?, the same memory -> true".to_string(),
        "x.to(&there)?, the same memory -> false".to_string(),
        format!("its loss is on -> {other}"),
        format!("gave results on -> cpu, {other}"),
        "add: operand 0 [2, 3] is on cpu, operand 1 [2, 3] is on".to_string(),
        "a.add(&b.to(a.device())?)?.device() -> cpu".to_string(),
    ] {
        assert!(text.contains(&line), "{line:?} is not in\n{text}");
    }
    let questions = text
        .lines()
        .filter(|line| line.ends_with('?') && !line.starts_with(' '));
    assert_eq!(questions.count(), 12, "{text}");
}
