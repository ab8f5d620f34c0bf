package clean

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// row is a large element of lists.
type row struct {
	Base
	Name   string           `json:"name"`
	Rows   []row            `json:"rows"`
	Next   *row             `json:"next"`
	ByName map[string][]row `json:"by_name"`
	Pair   [2][]row         `json:"pair"`
	When   time.Time        `json:"when"`
	Own    own              `json:"own"`
	Values []float64
	Other  []row `json:"-"`
	_      [500]byte
}

// Base is embedded.
type Base struct {
	Inner []row `json:"inner"`
}

// own reads its own JSON.
type own struct{ list []row }

func (o *own) JSONMembers() map[string]any { return map[string]any{"list": &o.list} }

// UnmarshalJSON implements json.Unmarshaler.
func (o *own) UnmarshalJSON(src []byte) error {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(src, &in); err != nil {
		return err
	}
	return json.Unmarshal(in["list"], &o.list)
}

// TestUnmarshalJSON checks that lists whose elements are larger than their text are refused wherever they are, and that
// others are read.
func TestUnmarshalJSON(t *testing.T) {
	for _, element := range []string{"0", "null", "{}", "[ ]", `""`, "-1.5e3 ", `{"name": "a{\"\\"}`} {
		list := "[" + strings.Repeat(element+",", 1<<14) + element + "]"
		for _, doc := range []string{
			`{"rows":` + list + `}`, ` { "r\u006fWS" :` + list + `}`, `{"name":"}","rows":` + list + `,"x":1}`, `{"next":{"next":{"rows":` + list + `}}}`,
			`{"by_name":{"a":` + list + `}}`, `{"pair":[[],` + list + `]}`, `{"inner":` + list + `}`, `{"own":{"list":` + list + `}}`, `{"rows":[{"rows":[],"name":"a"},{"rows":` + list + `}]}`,
		} {
			if err := UnmarshalJSON([]byte(doc), new(row)); !errors.Is(err, ErrDense) {
				t.Errorf("%.40s of %s: %v", doc, element, err)
			}
		}
		for _, doc := range []string{`{"values":` + list + `}`, `{"other":` + list + `}`, `{"-":` + list + `}`, `{"when":` + list + `}`, `{"rows":{"a":` + list + `}}`, list, `{"rows":` + list, `{"rows":` + list + `]`} {
			got, want := UnmarshalJSON([]byte(doc), new(row)), json.Unmarshal([]byte(doc), new(row))
			if errors.Is(got, ErrDense) || (got == nil) != (want == nil) {
				t.Errorf("%.40s of %s: %v, want %v", doc, element, got, want)
			}
		}
	}
}
