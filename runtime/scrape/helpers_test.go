package scrape

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime"
)

// patience is how long a test waits for what must come: it is waited for as long only where it does not.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	listEvery, ollamaEvery, runnersEvery = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	idleLoadEvery, speakEvery = event.Time(time.Hour), event.Time(time.Hour) // what is asked for once is not asked for again, however slow the machine is
	os.Exit(m.Run())
}

// fake is a server whose answers can be changed while it is watched.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]string
	hook  http.HandlerFunc // answers in place of pages; nil: does not
	asked map[string]int
}

func newFake(t *testing.T, pages map[string]string) *fake {
	t.Helper()
	f := &fake{pages: pages, asked: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked[r.URL.Path]++
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		hook(w, r)
		return
	}
	f.page(w, r)
}

// page answers with one of the pages.
func (f *fake) page(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	page, ok := f.pages[r.URL.Path]
	if full, found := f.pages[r.URL.String()]; found {
		page, ok = full, true
	}
	f.mu.Unlock()
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case strings.HasPrefix(page, "{"), strings.HasPrefix(page, "["):
		w.Header().Set("Content-Type", "application/json")
	default:
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	}
	_, _ = io.WriteString(w, page)
}

func (f *fake) set(path, page string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages[path] = page
}

func (f *fake) answer(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = h
}

func (f *fake) times(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[path]
}

// all is how often it was asked for anything.
func (f *fake) all() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, times := range f.asked {
		n += times
	}
	return n
}

// watching is a source that runs.
type watching struct {
	t   *testing.T
	log eventtest.Log
}

// watchIt watches a server until the test ends.
func watchIt(t *testing.T, opt Options) *watching {
	t.Helper()
	opt.Clock = runtime.NewClock()
	if opt.Interval == 0 {
		opt.Interval = 10 * time.Millisecond
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{t: t}
	eventtest.Run(t, s, &w.log)
	return w
}

// until waits for an event of a kind after the first n of them, and hands out how many there are then.
func until[T any](w *watching, kind event.Kind, from int, ok func(*T) bool) (*T, int) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		list := w.log.Of(kind)
		for i := from; i < len(list); i++ {
			if p, is := list[i].Data.(*T); is && ok(p) {
				return p, i + 1
			}
		}
	}
	w.t.Fatalf("of %v there came only %d, and none that was waited for", kind, len(w.log.Of(kind)))
	return nil, 0
}

// linked waits for a state of the connection.
func (w *watching) linked(link event.Link, why string, from int) (e *event.Engine, n int) {
	w.t.Helper()
	return until(w, event.KindEngine, from, func(e *event.Engine) bool {
		return e.Remote.Link == link && strings.Contains(e.Remote.Why, why)
	})
}

func sampleOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// models is a list of one model with an owner.
func models(owner string) string {
	return `{"object":"list","data":[{"id":"m","object":"model","owned_by":"` + owner + `"}]}`
}
