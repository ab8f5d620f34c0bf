package engine

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
	"github.com/llmtop/llmtop/runtime/engine"
)

// patience is the longest wait for an expected event. Passing tests do not wait that long.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	listEvery, ollamaEvery, runnersEvery = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	idleLoadEvery = event.Time(time.Hour) // poll once per test, however slow the machine is
	os.Exit(m.Run())
}

// fake is a server whose responses can be changed while it is polled.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	pages    map[string]string
	handler  http.HandlerFunc // replaces pages; nil: none
	requests map[string]int
}

func newFake(t *testing.T, pages map[string]string) *fake {
	t.Helper()
	f := &fake{pages: pages, requests: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests[r.URL.Path]++
	hook := f.handler
	f.mu.Unlock()
	if hook != nil {
		hook(w, r)
		return
	}
	f.servePage(w, r)
}

// servePage responds with the page of the path.
func (f *fake) servePage(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	page, ok := f.pages[r.URL.Path]
	if full, found := f.pages[strings.TrimSuffix(r.URL.String(), "&autoload=false")]; found {
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

func (f *fake) setPage(path, page string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages[path] = page
}

func (f *fake) setHandler(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handler = h
}

func (f *fake) requestCount(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[path]
}

// totalRequests returns the number of requests to all paths.
func (f *fake) totalRequests() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, times := range f.requests {
		n += times
	}
	return n
}

// runningPoller is a Poller that runs, and its events.
type runningPoller struct {
	t   *testing.T
	log eventtest.Log
}

// startPoller polls a server until the test ends.
func startPoller(t *testing.T, opt Options) *runningPoller {
	t.Helper()
	opt.Clock = engine.NewClock()
	if opt.Interval == 0 {
		opt.Interval = 10 * time.Millisecond
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	w := &runningPoller{t: t}
	eventtest.Run(t, s, &w.log)
	return w
}

// waitFor waits for an event of a kind that ok accepts, beyond the first from events. It returns the number of events
// up to it.
func waitFor[T any](w *runningPoller, kind event.Kind, from int, ok func(*T) bool) (*T, int) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		list := w.log.OfKind(kind)
		for i := from; i < len(list); i++ {
			if p, is := list[i].Data.(*T); is && ok(p) {
				return p, i + 1
			}
		}
	}
	w.t.Fatalf("%d %v events, none as expected", len(w.log.OfKind(kind)), kind)
	return nil, 0
}

// waitForLink waits for a connection state whose reason contains why.
func (w *runningPoller) waitForLink(link event.Link, why string, from int) (e *event.EngineInfo, n int) {
	w.t.Helper()
	return waitFor(w, event.KindEngine, from, func(e *event.EngineInfo) bool {
		return e.Remote.Link == link && strings.Contains(e.Remote.Reason, why)
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

// modelList returns a list with one model.
func modelList(owner string) string {
	return `{"object":"list","data":[{"id":"m","object":"model","owned_by":"` + owner + `"}]}`
}
