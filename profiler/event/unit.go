package event

import "strings"

// Unit is the unit of a number in UCUM, as OpenTelemetry writes it: "s", "By", "1" for a share of 0..1, "{token}/s" for
// counted things per second. "" has no unit.
type Unit string

// Base returns the unit in which the number is exported and compared, and the factor to it: ns become s.
func (u Unit) Base() (Unit, float64) {
	if u == "ns" {
		return "s", 1e-9
	}
	return u, 1
}

// String returns the unit as people write it: "B" for "By", "0..1" for "1", "cores" for "{core}",
// "1/s" for "{fault}/s".
func (u Unit) String() string {
	switch u {
	case "By", "By/s":
		return strings.Replace(string(u), "By", "B", 1)
	case "1":
		return "0..1"
	case "Cel":
		return "°C"
	}
	if thing, ok := strings.CutPrefix(string(u), "{"); ok {
		thing, per, _ := strings.Cut(thing, "}")
		if per != "" && thing != "token" && thing != "request" {
			return "1" + per
		}
		if strings.HasSuffix(thing, "s") {
			thing += "e"
		}
		return thing + "s" + per
	}
	return string(u)
}
