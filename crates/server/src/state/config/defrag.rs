//! The settings of active defragmentation, under Redis's names.

/// When data is moved together, and how hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defrag {
    /// `activedefrag`
    pub is_on: bool,
    /// `active-defrag-ignore-bytes`: nothing is done while fewer bytes than this are lost.
    pub ignore_bytes: u64,
    /// `active-defrag-threshold-lower`: when this much is lost, in percent of what is used, work begins, at
    /// `cycle_min`.
    pub threshold_lower: u32,
    /// `active-defrag-threshold-upper`: when this much is lost, work is done at `cycle_max`.
    pub threshold_upper: u32,
    /// `active-defrag-cycle-min` and `-max`: percent of one processor.
    pub cycle_min: u32,
    pub cycle_max: u32,
    /// `active-defrag-max-scan-fields`: a longer list is moved in steps of its own.
    pub max_scan_fields: u64,
}

impl Default for Defrag {
    fn default() -> Defrag {
        Defrag {
            is_on: true,
            ignore_bytes: 10 << 20,
            threshold_lower: 10,
            threshold_upper: 100,
            cycle_min: 1,
            cycle_max: 25,
            max_scan_fields: 1000,
        }
    }
}

impl Defrag {
    /// Percent of one processor that defragmentation may take where `lost_bytes` are lost beside
    /// `used_bytes`; None where nothing is to be done.
    pub(crate) fn effort_percent(&self, used_bytes: u64, lost_bytes: u64) -> Option<u32> {
        let percent = lost_bytes.saturating_mul(100) / used_bytes.max(1);
        if !self.is_on || lost_bytes < self.ignore_bytes || percent < u64::from(self.threshold_lower) {
            return None;
        }
        let (lower, upper) = (u64::from(self.threshold_lower), u64::from(self.threshold_upper));
        let (least, most) = (u64::from(self.cycle_min), u64::from(self.cycle_max));
        if percent >= upper || most <= least {
            return Some(most as u32);
        }
        Some((least + (most - least) * (percent - lower) / (upper - lower)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_grows_from_the_lower_to_the_upper_threshold() {
        let defrag = Defrag { cycle_min: 5, cycle_max: 45, ..Defrag::default() };
        let percent = |lost: u64| defrag.effort_percent(1 << 30, (1 << 30) / 100 * lost + 100);
        assert_eq!([5, 10, 55, 100, 900].map(percent), [None, Some(5), Some(25), Some(45), Some(45)]);
        assert_eq!(defrag.effort_percent(1 << 20, 9 << 20), None, "too little to care");
        assert_eq!(Defrag { is_on: false, ..defrag }.effort_percent(1 << 30, 1 << 30), None);
    }

    #[test]
    fn thresholds_and_cycles_in_any_order_are_no_harm() {
        let defrag = Defrag { threshold_lower: 100, threshold_upper: 50, ..Defrag::default() };
        assert_eq!(defrag.effort_percent(1 << 30, 1 << 30), Some(25));
        let defrag = Defrag { cycle_min: 50, ..Defrag::default() };
        assert_eq!(defrag.effort_percent(1 << 30, 300 << 20), Some(25));
    }
}
