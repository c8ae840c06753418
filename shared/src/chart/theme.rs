//! Colours of a picture. Text on background is 4.5 : 1 or better in every theme, 7 : 1 in the high-contrast ones; the
//! tests compute it.

use plotters::style::RGBAColor;

use crate::run::Condition;

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    pub(super) fn opaque(self) -> RGBAColor {
        self.alpha(1.0)
    }

    pub(super) fn alpha(self, alpha: f64) -> RGBAColor {
        RGBAColor(self.0, self.1, self.2, alpha)
    }

    const fn hex(hex: u32) -> Self {
        let [_, r, g, b] = hex.to_be_bytes();
        Self(r, g, b)
    }
}

/// The colours of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Theme {
    /// Behind everything; also the inside of hollow marks.
    pub background: Rgb,
    /// Text.
    pub foreground: Rgb,
    /// Text of less weight.
    pub dim: Rgb,
    /// Grid lines.
    pub grid: Rgb,
    /// Cold, held-out starts.
    pub cold: Rgb,
    /// Prefetched starts.
    pub prefetched: Rgb,
    /// Warm starts.
    pub warm: Rgb,
    /// The verdict when faster.
    pub gain: Rgb,
    /// The verdict when slower.
    pub loss: Rgb,
    /// How strongly bars are filled, 0 to 1.
    pub bar: f64,
}

impl Theme {
    /// Dark on white, as a card of the light style.
    pub const LIGHT: Self = Self {
        background: Rgb::hex(0xff_ff_ff),
        foreground: Rgb::hex(0x2e_34_36),
        dim: Rgb::hex(0x6a_6a_6c),
        grid: Rgb::hex(0xe6_e6_e6),
        cold: Rgb::hex(0xc6_46_00),
        prefetched: Rgb::hex(0x1c_71_d8),
        warm: Rgb::hex(0x77_76_7b),
        gain: Rgb::hex(0x17_6b_41),
        loss: Rgb::hex(0xb5_12_1b),
        bar: 0.26,
    };

    /// Light on dark grey, as a card of the dark style.
    pub const DARK: Self = Self {
        background: Rgb::hex(0x36_36_36),
        foreground: Rgb::hex(0xff_ff_ff),
        dim: Rgb::hex(0xc0_bf_bc),
        grid: Rgb::hex(0x4a_4a_4a),
        cold: Rgb::hex(0xff_a3_48),
        prefetched: Rgb::hex(0x78_ae_ed),
        warm: Rgb::hex(0x9a_99_96),
        gain: Rgb::hex(0x8f_f0_a4),
        loss: Rgb::hex(0xff_93_8c),
        bar: 0.30,
    };

    /// Black on white, every line strong.
    pub const LIGHT_HIGH_CONTRAST: Self = Self {
        background: Rgb::hex(0xff_ff_ff),
        foreground: Rgb::hex(0x00_00_00),
        dim: Rgb::hex(0x2e_2e_2e),
        grid: Rgb::hex(0x8a_8a_8a),
        cold: Rgb::hex(0x8f_32_00),
        prefetched: Rgb::hex(0x0f_4a_99),
        warm: Rgb::hex(0x4a_4a_4d),
        gain: Rgb::hex(0x0b_4d_2c),
        loss: Rgb::hex(0x8a_0a_12),
        bar: 0.40,
    };

    /// White on near black, every line strong.
    pub const DARK_HIGH_CONTRAST: Self = Self {
        background: Rgb::hex(0x1a_1a_1a),
        foreground: Rgb::hex(0xff_ff_ff),
        dim: Rgb::hex(0xe6_e6_e6),
        grid: Rgb::hex(0x8a_8a_8a),
        cold: Rgb::hex(0xff_be_6f),
        prefetched: Rgb::hex(0x99_c1_f1),
        warm: Rgb::hex(0xc0_bf_bc),
        gain: Rgb::hex(0x8f_f0_a4),
        loss: Rgb::hex(0xff_b0_aa),
        bar: 0.45,
    };

    /// The theme for a style.
    #[must_use]
    pub fn of(dark: bool, high_contrast: bool) -> &'static Self {
        match (dark, high_contrast) {
            (false, false) => &Self::LIGHT,
            (true, false) => &Self::DARK,
            (false, true) => &Self::LIGHT_HIGH_CONTRAST,
            (true, true) => &Self::DARK_HIGH_CONTRAST,
        }
    }

    pub(super) fn condition(&self, condition: Condition) -> Rgb {
        match condition {
            Condition::Cold => self.cold,
            Condition::Prefetched => self.prefetched,
            Condition::Warm => self.warm,
        }
    }

    /// The colour of a condition's figures: the grey of warm marks is too weak for text.
    pub(super) fn text_of(&self, condition: Condition) -> Rgb {
        match condition {
            Condition::Warm => self.foreground,
            other => self.condition(other),
        }
    }
}
