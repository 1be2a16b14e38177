//! Transforms: values, the same result from the same generator, errors.

use std::collections::HashSet;

use drivetrain_core::ErrorKind;
use drivetrain_data::{
    CenterCrop, Compose, Dataset, Generator, Image, Normalize, Pixels, RandomCrop,
    RandomHorizontalFlip, ToTensor, Transform, VecDataset,
};

/// 1, 2, 3, … in the shape [channels, height, width].
fn counted(channels: usize, height: usize, width: usize) -> Image {
    let pixels = (1..=channels * height * width).map(|i| i as u8).collect();
    Image::from_u8(channels, height, width, pixels).unwrap()
}

fn apply(transform: &dyn Transform, image: Image, seed: u64) -> Image {
    transform
        .apply(image, &mut Generator::new(seed, 0))
        .unwrap()
}

fn bytes(image: Image) -> Vec<u8> {
    match image.into_pixels() {
        Pixels::U8(bytes) => bytes,
        Pixels::F32(_) => panic!("floats"),
    }
}

#[test]
fn to_tensor_and_normalize_do_the_arithmetic_of_pytorch() {
    let steps = Compose::new()
        .then(ToTensor)
        .then(Normalize::new(&[0.5, 0.0], &[0.5, 2.0]).unwrap());
    let image = Image::from_u8(2, 1, 2, vec![0, 255, 51, 255]).unwrap();
    let image = apply(&steps, image, 0);
    assert_eq!(image.pixels(), &Pixels::F32(vec![-1.0, 1.0, 0.1, 0.5]));
}

#[test]
fn normalize_refuses_bytes_wrong_channels_and_a_std_of_zero() {
    let normalize = Normalize::new(&[0.5, 0.5, 0.5], &[0.5, 0.5, 0.5]).unwrap();
    let mut random = Generator::new(0, 0);
    let error = normalize.apply(counted(3, 1, 1), &mut random).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    assert!(error.to_string().contains("ToTensor"), "{error}");
    let grey = counted(1, 2, 2).to_f32();
    let error = normalize.apply(grey, &mut random).unwrap_err();
    assert!(error.to_string().contains("3 channels"), "{error}");
    assert!(Normalize::new(&[0.5], &[0.0]).is_err());
    assert!(Normalize::new(&[0.5], &[0.5, 0.5]).is_err());
    assert!(Normalize::new(&[], &[]).is_err());
}

#[test]
fn a_flip_mirrors_every_row() {
    let always = RandomHorizontalFlip::new(1.0).unwrap();
    let flipped = bytes(apply(&always, counted(2, 2, 3), 0));
    assert_eq!(flipped, [3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10]);
    let never = RandomHorizontalFlip::new(0.0).unwrap();
    assert_eq!(apply(&never, counted(2, 2, 3), 0), counted(2, 2, 3));
    let half = RandomHorizontalFlip::new(0.5).unwrap();
    let flips = (0..1000).filter(|&seed| bytes(apply(&half, counted(1, 1, 2), seed)) == [2, 1]);
    assert!((400..600).contains(&flips.count()));
    assert!(RandomHorizontalFlip::new(1.5).is_err());
    assert!(RandomHorizontalFlip::new(f64::NAN).is_err());
}

#[test]
fn a_random_crop_reaches_every_place_and_pads_with_zeros() {
    let crop = RandomCrop::new(2, 2).padding(1);
    let seen: HashSet<Vec<u8>> = (0..200)
        .map(|seed| bytes(apply(&crop, counted(1, 2, 2), seed)))
        .collect();
    let expected = [
        [0, 0, 0, 1],
        [0, 0, 1, 2],
        [0, 0, 2, 0],
        [0, 1, 0, 3],
        [1, 2, 3, 4],
        [2, 0, 4, 0],
        [0, 3, 0, 0],
        [3, 4, 0, 0],
        [4, 0, 0, 0],
    ];
    assert_eq!(seen, expected.iter().map(|e| e.to_vec()).collect());

    // Padding wider than the crop: windows that miss the image are all zeros.
    let far = RandomCrop::new(1, 1).padding(5);
    let sums: Vec<u8> = (0..300)
        .flat_map(|seed| bytes(apply(&far, counted(1, 1, 1), seed)))
        .collect();
    assert!(sums.contains(&0) && sums.contains(&1));

    let planes = apply(&RandomCrop::new(2, 3), counted(2, 2, 3), 1);
    assert_eq!(planes, counted(2, 2, 3));
}

#[test]
fn crops_that_do_not_fit_are_errors() {
    let mut random = Generator::new(0, 0);
    for crop in [
        RandomCrop::new(5, 2).padding(1),
        RandomCrop::new(1, 1).padding(usize::MAX),
        RandomCrop::new(usize::MAX, 1),
    ] {
        let error = crop.apply(counted(1, 2, 2), &mut random).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains("[1, 2, 2]"), "{error}");
    }
    assert!(
        CenterCrop::new(3, 1)
            .apply(counted(1, 2, 2), &mut random)
            .is_err()
    );
    let middle = bytes(apply(&CenterCrop::new(1, 2), counted(1, 3, 4), 0));
    assert_eq!(middle, [6, 7]);
}

#[test]
fn the_same_generator_gives_the_same_image() {
    let steps = Compose::new()
        .then(RandomCrop::new(8, 8).padding(4))
        .then(RandomHorizontalFlip::new(0.5).unwrap())
        .then(|image: Image, random: &mut Generator| {
            let _ = random.word();
            Ok(image)
        });
    for seed in 0..20 {
        assert_eq!(
            apply(&steps, counted(1, 8, 8), seed),
            apply(&steps, counted(1, 8, 8), seed)
        );
    }
    assert_ne!(
        apply(&steps, counted(1, 8, 8), 1),
        apply(&steps, counted(1, 8, 8), 2)
    );
}

#[test]
fn data_sets_take_transforms_and_keep_labels() {
    let set = VecDataset::new(vec![(counted(1, 2, 2), 5i64)]).transform(ToTensor);
    let (image, label) = set.get(0).unwrap();
    assert_eq!((image, label), (counted(1, 2, 2).to_f32(), 5));
    let torn = Image::from_u8(1, 2, 2, vec![0; 5]).unwrap_err();
    assert!(torn.to_string().contains("5 pixels"), "{torn}");
    assert!(Image::from_f32(usize::MAX, 2, 2, vec![]).is_err());
}

#[test]
fn interleaved_pixels_become_planes() {
    let image = Image::from_interleaved(3, 1, 2, &[1, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(bytes(image), [1, 4, 2, 5, 3, 6]);
}
