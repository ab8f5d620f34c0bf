package event

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Reading is a number that may be absent. Its zero value is "not reported".
type Reading struct {
	V      float64
	Origin Origin
}

// Origin is where a number comes from, or why it is absent.
type Origin uint8

// The origins. Those below Measured are reasons for absence.
const (
	NotReported Origin = iota
	NotPermitted
	NoDevice
	NotYet    // needs more samples
	Undefined // has no meaning here, for example TPOT of one token
	Measured
	Reported // by the engine
	Derived
)

var originNames = [...]string{
	"not reported", "not permitted", "no device", "not yet", "undefined", "measured", "reported", "derived",
}

// String returns the text for an absence, or the name of the origin.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return originNames[0]
}

// MarshalText returns what String does.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText returns; other text is "not reported".
func (o *Origin) UnmarshalText(text []byte) error {
	*o = Origin(max(slices.Index(originNames[:], string(text)), 0))
	return nil
}

// OK reports whether there is a number. An implausible number counts as absent, whatever its origin.
func (r Reading) OK() bool { return r.Origin >= Measured && Plausible(r.V) }

// Absence returns the text for the absence of a number.
func (r Reading) Absence() string {
	if r.Origin >= Measured {
		return Undefined.String()
	}
	return r.Origin.String()
}

// Positive returns the number if it is above 0.
func (r Reading) Positive() (float64, bool) { return r.V, r.OK() && r.V > 0 }

// MarshalJSON writes the number, or null if it is absent.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.OK() {
		return []byte("null"), nil
	}
	return json.Marshal(r.V)
}

// UnmarshalJSON reads a number; null becomes "not reported".
func (r *Reading) UnmarshalJSON(src []byte) error {
	*r = Reading{}
	if bytes.Equal(src, []byte("null")) {
		return nil
	}
	r.Origin = Measured
	return json.Unmarshal(src, &r.V)
}

// MeasuredValue returns a measured reading.
func MeasuredValue(v float64) Reading { return Reading{v, Measured} }

// ReportedValue returns a reading that the engine reported; absent if it cannot be one.
func ReportedValue(v float64) Reading {
	if !PlausibleReading(v) {
		return Absent(Undefined)
	}
	return Reading{v, Reported}
}

// DerivedValue returns a derived reading.
func DerivedValue(v float64) Reading { return Reading{v, Derived} }

// Absent returns a missing reading with the reason.
func Absent(why Origin) Reading { return Reading{Origin: why} }

// Plus returns the sum of two readings. An absent one adds nothing; two absent ones give the later reason in the order of
// the origins.
func (r Reading) Plus(o Reading) Reading {
	switch {
	case !r.OK() && !o.OK():
		return Absent(min(max(r.Origin, o.Origin), Undefined))
	case !r.OK():
		return o
	case !o.OK():
		return r
	}
	return DerivedValue(r.V + o.V)
}
