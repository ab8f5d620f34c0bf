package answers

import (
	"runtime"
	"strings"
	"testing"
)

// TestMemoryOfMessages checks that lists of what is no object, or of empty ones, take no more than some times their size.
func TestMemoryOfMessages(t *testing.T) {
	for _, element := range []string{"0", "{}", "null"} {
		list := "[" + strings.Repeat(element+",", 1<<17) + element + "]"
		for _, doc := range []string{
			`{"choices":` + list + `}`, `{"choices":[{"delta":{"tool_calls":` + list + `}}]}`, `{"message":{"tool_calls":` + list + `}}`,
			`{"content":` + list + `}`, `{"output":` + list + `}`, `{"response":{"output":` + list + `}}`, `{"output_ids":` + list + `}`,
		} {
			for _, d := range Dialects {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_ = d.read(new(Message), []byte(doc)) // may or may not be an error
				runtime.ReadMemStats(&after)
				if took := after.TotalAlloc - before.TotalAlloc; took > uint64(16<<20+64*len(doc)) {
					t.Errorf("%s: %d bytes of %.40s take %d in memory", d.Name, len(doc), doc, took)
				}
			}
		}
	}
}
