// Package theme defines the look of the screen: roles, palettes, the terminal's colour profile and glyph sets. It does
// not depend on metrics or panes.
package theme

import "math"

// RGB is a colour in sRGB, 8 bits per channel.
type RGB struct{ R, G, B uint8 }

// RGBA implements image/color.Color.
func (c RGB) RGBA() (r, g, b, a uint32) {
	return uint32(c.R) * 0x101, uint32(c.G) * 0x101, uint32(c.B) * 0x101, 0xffff
}

// linear converts an sRGB channel to linear light, 0..1 (WCAG 2.2, relative luminance).
func linear(v uint8) float64 {
	c := float64(v) / 255
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

// Luminance returns the relative luminance of WCAG 2.2, 0..1.
func (c RGB) Luminance() float64 {
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// Contrast returns the contrast ratio of WCAG 2.2, 1..21. Text needs 4.5 (AA), graphics 3.
func Contrast(a, b RGB) float64 {
	la, lb := a.Luminance(), b.Luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// mix interpolates between a (t=0) and b (t=1).
func mix(a, b RGB, t float64) RGB {
	ch := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*t)) }
	return RGB{ch(a.R, b.R), ch(a.G, b.G), ch(a.B, b.B)}
}

// ramp interpolates n colours evenly through stops.
func ramp(n int, stops ...RGB) []RGB {
	out := make([]RGB, n)
	for i := range out {
		p := float64(i) / float64(n-1) * float64(len(stops)-1)
		k := min(int(p), len(stops)-2)
		out[i] = mix(stops[k], stops[k+1], p-float64(k))
	}
	return out
}
