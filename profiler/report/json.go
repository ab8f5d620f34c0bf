package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report as one indented document. The order of its fields is always the same.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
