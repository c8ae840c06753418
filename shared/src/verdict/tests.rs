use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;

/// A small generator of even numbers (xorshift64*), so that each run draws the same.
struct Draws(u64);

impl Draws {
    #[expect(clippy::cast_precision_loss, reason = "53 bits")]
    fn even(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.even().max(f64::MIN_POSITIVE), self.even());
        (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
    }

    /// The time of a start: log-normal around `middle`, and one in twenty takes two to six times as long.
    fn time(&mut self, middle: f64, spread: f64) -> f64 {
        let time = middle * (spread * self.normal()).exp();
        if self.even() < 0.05 { time * (2.0 + 4.0 * self.even()) } else { time }
    }

    fn times(&mut self, count: usize, middle: f64) -> Vec<f64> {
        (0..count).map(|_| self.time(middle, 0.1)).collect()
    }
}

/// What became of an app over its cold launches, judged after each of them.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// The launch at which it was first called faster.
    faster: Option<usize>,
    slower: Option<usize>,
    gave_up: Option<usize>,
}

fn live(draws: &mut Draws, gain: f64, spread: f64, launches: usize) -> Life {
    let (mut held_out, mut prefetched) = (Vec::new(), Vec::new());
    let mut life = Life::default();
    for launch in 0..launches {
        if draws.even() < 0.125 {
            held_out.insert(0, draws.time(1.0, spread));
        } else {
            prefetched.insert(0, draws.time(1.0 - gain, spread));
        }
        let verdict = judge(Milestone::FirstWindow, &held_out, &prefetched);
        match verdict {
            Verdict::Faster(_) => life.faster = life.faster.or(Some(launch)),
            Verdict::Slower(_) => life.slower = life.slower.or(Some(launch)),
            _ => {}
        }
        if give_up(&verdict).is_some() {
            life.gave_up = Some(launch);
            break;
        }
    }
    life
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn share(count: usize, of: usize) -> f64 {
    count as f64 / of as f64
}

fn part(lives: &[Life], when: impl Fn(&Life) -> Option<usize>) -> (f64, Option<usize>) {
    let mut at: Vec<usize> = lives.iter().filter_map(when).collect();
    at.sort_unstable();
    (share(at.len(), lives.len()), at.get(at.len() / 2).copied())
}

/// Shares of `rounds` in which an app without a gain is called faster, and slower, at one look.
fn false_claims(draws: &mut Draws, held_out: usize, prefetched: usize, rounds: usize) -> (f64, f64) {
    let (mut faster, mut slower) = (0, 0);
    for _ in 0..rounds {
        let (a, b) = (draws.times(held_out, 1.0), draws.times(prefetched, 1.0));
        match judge(Milestone::FirstWindow, &a, &b) {
            Verdict::Faster(_) => faster += 1,
            Verdict::Slower(_) => slower += 1,
            _ => {}
        }
    }
    (share(faster, rounds), share(slower, rounds))
}

#[test]
fn at_one_look_a_gain_that_is_not_there_is_rarely_claimed() {
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    for (held_out, prefetched) in [(6, 40), (12, 40), (40, 6)] {
        let (faster, slower) = false_claims(&mut draws, held_out, prefetched, 800);
        assert!(faster <= 0.015 && slower <= 0.015, "{held_out}/{prefetched}: {faster} {slower}");
    }
}

#[test]
fn over_the_life_of_an_app_a_real_gain_is_found_and_one_that_is_not_there_given_up() {
    let mut draws = Draws(0x1234_5678_9abc_def1);
    let real: Vec<Life> = (0..30).map(|_| live(&mut draws, 0.2, 0.1, 120)).collect();
    assert!(part(&real, |life| life.faster).0 > 0.95, "{real:?}");
    assert!(real.iter().all(|life| life.gave_up.is_none()), "{real:?}");
    let none: Vec<Life> = (0..20).map(|_| live(&mut draws, 0.0, 0.1, 300)).collect();
    assert!(part(&none, |life| life.faster).0 <= 0.1, "{none:?}");
    assert!(part(&none, |life| life.gave_up).0 > 0.8, "{none:?}");
    let slower: Vec<Life> = (0..10).map(|_| live(&mut draws, -0.3, 0.1, 150)).collect();
    assert!(part(&slower, |life| life.slower).0 > 0.8, "{slower:?}");
}

/// The figures of the module's documentation. Takes a minute and more.
#[test]
#[ignore = "takes minutes: run it with --ignored --nocapture when a rule is changed"]
fn calibration() {
    let mut draws = Draws(88_172_645_463_325_252);
    for (held_out, prefetched) in [(6, 6), (6, 40), (8, 40), (12, 40), (24, 40), (40, 40)] {
        let (faster, slower) = false_claims(&mut draws, held_out, prefetched, 6_000);
        println!("{held_out:2} held out, {prefetched} prefetched: faster {faster:.4}, slower {slower:.4}");
        assert!(faster <= 0.01 && slower <= 0.01);
    }
    for spread in [0.1, 0.2, 0.3] {
        for gain in [-0.1, 0.0, 0.05, 0.1, 0.2, 0.4] {
            let lives: Vec<Life> = (0..500).map(|_| live(&mut draws, gain, spread, 320)).collect();
            let (faster, slower) = (part(&lives, |life| life.faster), part(&lives, |life| life.slower));
            let gave_up = part(&lives, |life| life.gave_up);
            println!(
                "spread {spread}, gain {gain}: faster {faster:?}, slower {slower:?}, gave up {gave_up:?}"
            );
            if spread < 0.15 && gain == 0.0 {
                assert!(faster.0 <= 0.03);
            }
            if spread < 0.15 && gain >= 0.2 {
                assert!(gave_up.0 <= 0.01 && faster.0 > 0.99);
            }
        }
    }
}

#[test]
fn too_few_launches_of_either_arm_tell_nothing() {
    let measuring = |held_out, prefetched| Verdict::Measuring { held_out, prefetched, needed: NEEDED };
    let judged = |a: &[f64], b: &[f64]| judge(Milestone::Exit, a, b);
    assert_eq!(judged(&[], &[]), measuring(0, 0));
    assert_eq!(judged(&[2.0; 5], &[1.0; 50]), measuring(5, WINDOW));
    assert_eq!(judged(&[2.0; 50], &[1.0; 5]), measuring(WINDOW, 5));
    assert_eq!(judged(&[f64::NAN; 9], &[1.0; 9]), measuring(0, 9));
    assert_eq!(give_up(&measuring(5, 40)), None);
}

#[test]
fn the_claim_follows_the_interval_and_the_latest_launches() {
    let Verdict::Faster(effect) = judge(Milestone::Settled, &[2.0; 6], &[1.0; 6]) else {
        panic!("twice as fast, without any scatter")
    };
    assert_eq!((effect.milestone, effect.before, effect.after), (Milestone::Settled, 2.0, 1.0));
    assert_eq!((effect.gain.value, effect.gain.interval.low, effect.gain.interval.high), (1.0, 1.0, 1.0));
    assert_eq!((effect.held_out, effect.prefetched), (6, 6));
    assert!(matches!(judge(Milestone::Exit, &[1.0; 6], &[2.0; 6]), Verdict::Slower(_)));
    assert!(matches!(judge(Milestone::Exit, &[1.0; 6], &[1.0; 6]), Verdict::NoMeasurableGain(_)));
    let mut changed = vec![1.0; WINDOW];
    changed.extend([9.0; 60]);
    let verdict = judge(Milestone::Exit, &[2.0; WINDOW], &changed);
    assert!(
        matches!(verdict, Verdict::Faster(effect) if effect.after < 1.1),
        "what is past the window is past"
    );
}

#[test]
fn outliers_change_nothing() {
    let mut prefetched = vec![1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02, 0.98, 0.99, 1.01, 1.03, 0.97];
    let mut held_out = vec![2.0, 2.1, 1.9, 2.05, 1.95, 2.0];
    let gain = |held_out: &[f64], prefetched: &[f64]| match judge(Milestone::Exit, held_out, prefetched) {
        Verdict::Faster(effect) => effect.gain.value,
        other => panic!("{other:?}"),
    };
    let before = gain(&held_out, &prefetched);
    (held_out[0], prefetched[0]) = (60.0, 100.0);
    assert!((gain(&held_out, &prefetched) - before).abs() < 0.1);
}

#[test]
fn an_app_is_given_up_only_if_a_gain_would_have_shown() {
    let effect = |value, low, high, each| Effect {
        milestone: Milestone::Exit,
        before: 1.0,
        after: 1.0 - value,
        gain: Estimate { value, interval: stats::Interval { low, high, level: LEVEL } },
        held_out: each,
        prefetched: WINDOW,
    };
    assert_eq!(give_up(&Verdict::Slower(effect(-0.2, -0.3, -0.1, 6))), Some(true));
    assert_eq!(give_up(&Verdict::Faster(effect(0.01, 0.001, 0.02, 40))), None);
    assert_eq!(give_up(&Verdict::NoMeasurableGain(effect(0.0, -0.04, 0.04, 6))), Some(false));
    assert_eq!(give_up(&Verdict::NoMeasurableGain(effect(0.0, -0.2, 0.2, ENOUGH - 1))), None);
    assert_eq!(give_up(&Verdict::NoMeasurableGain(effect(0.0, -0.2, 0.2, ENOUGH))), Some(false));
    assert_eq!(give_up(&Verdict::NoMeasurableGain(effect(0.15, -0.2, 0.5, 40))), None);
}

proptest! {
    #[test]
    fn whatever_the_times_the_verdict_holds_together(
        a in prop::collection::vec(0.001_f64..100.0, 0..60),
        b in prop::collection::vec(0.001_f64..100.0, 0..60),
        scale in 0.01_f64..100.0,
    ) {
        let verdict = judge(Milestone::Exit, &a, &b);
        if let Verdict::Faster(e) | Verdict::Slower(e) | Verdict::NoMeasurableGain(e) = verdict {
            prop_assert!(e.gain.interval.low <= e.gain.interval.high);
            // The bootstrap of an even sample takes one of the two middle values, and its median is between them.
            prop_assert!(e.gain.value.is_finite() && e.before > 0.0 && e.after > 0.0);
            prop_assert!(e.held_out.min(e.prefetched) >= NEEDED && e.held_out.max(e.prefetched) <= WINDOW);
        }
        let scaled = |times: &[f64]| times.iter().map(|t| t * scale).collect::<Vec<_>>();
        let same = judge(Milestone::Exit, &scaled(&a), &scaled(&b));
        prop_assert_eq!(std::mem::discriminant(&verdict), std::mem::discriminant(&same), "seconds or minutes");
        let swapped = judge(Milestone::Exit, &b, &a);
        prop_assert_eq!(matches!(verdict, Verdict::Faster(_)), matches!(swapped, Verdict::Slower(_)));
    }
}
