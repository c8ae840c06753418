//! The order of the starts of a comparison.

use headstart_shared::run::Condition;
use rand::Rng;
use rand::seq::SliceRandom;

/// One start to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its round, from 1.
    pub round: u32,
    /// Its condition.
    pub condition: Condition,
    /// Whether it is recorded, to see what recording costs. Only cold starts are.
    pub recorded: bool,
}

/// All starts of a comparison, shuffled within each round: a slow moment or a trend then hits all conditions alike.
/// With `recording`, each round has one more cold start, which is recorded.
#[must_use]
pub fn slots(rounds: u32, recording: bool, random: &mut impl Rng) -> Vec<Slot> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        let slot = |condition, recorded| Slot { round, condition, recorded };
        let mut slots: Vec<Slot> = Condition::ALL.map(|condition| slot(condition, false)).into();
        slots.extend(recording.then(|| slot(Condition::Cold, true)));
        slots.shuffle(random);
        all.extend(slots);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn each_round_has_each_condition_once() {
        let slots = slots(20, false, &mut StdRng::seed_from_u64(1));
        for (number, round) in slots.chunks(3).enumerate() {
            assert!(round.iter().all(|slot| slot.round as usize == number + 1 && !slot.recorded));
            assert_eq!(round.iter().map(|slot| slot.condition).collect::<HashSet<_>>().len(), 3);
        }
    }

    #[test]
    fn the_order_changes_from_round_to_round() {
        let slots = slots(20, true, &mut StdRng::seed_from_u64(1));
        let orders: HashSet<Vec<_>> =
            slots.chunks(4).map(|round| round.iter().map(|s| (s.condition, s.recorded)).collect()).collect();
        assert!(orders.len() > 5, "{orders:?}");
        assert_eq!(slots.iter().filter(|slot| slot.recorded).count(), 20);
    }
}
