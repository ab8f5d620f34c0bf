package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func init() {
	keyCases["alerts"] = func(t *testing.T, a *app, _ *calls) {
		a.press("a")
		holds(t, a, "no alerts configured")
		a.press("a")
		if strings.Contains(a.screen(), "no alerts configured") {
			t.Error("pressing a again does not close the list")
		}
	}
}

// alertStates returns one alert in each state.
func alertStates() []alert.Status {
	now := 100 * event.Time(time.Second)
	at := func(s int) event.Time { return event.Time(s) * event.Time(time.Second) }
	return []alert.Status{
		{Name: "deep queue", When: "queued > 8", For: 5 * time.Second, Window: metric.Minute, Now: now, Value: "0"},
		{Name: "KV nearly full", When: "kv > 90 %", For: 30 * time.Second, Window: metric.Minute, State: alert.Pending, Since: at(88), Now: now, Value: "93 %"},
		{Name: "slow first tokens", When: "ttft_p99 > 500 ms and running >= 4", For: 10 * time.Second, Window: metric.TenSeconds, State: alert.Firing, Since: at(40), Now: now, Value: "612 ms", Fired: 2},
		{Engine: "tcp:127.0.0.1:7071", Name: "stalls", When: "stalls > 20", Window: metric.Minute, State: alert.Resolved, Since: at(95), Now: now, Value: "3", Fired: 1},
	}
}

func TestGoldenAlerts(t *testing.T) {
	show := func(a *app) *app {
		a.cfg.Alerts = alertStates
		a.Update(tickMsg{})
		a.press("a")
		return a
	}
	goldenColours(t, "alerts", show(overlay(120, 36, false)))
	goldenText(t, "alerts_ascii", show(overlay(80, 24, true)))
}

// A firing alert shows a note in the footer and stays in the header of every view; esc closes the list first.
func TestFiringAlertsAreShown(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 160, 45)
	now := alertStates()[2:3]
	a.cfg.Alerts = func() []alert.Status { return append([]alert.Status(nil), now...) }
	now[0].State = alert.Pending
	a.Update(tickMsg{})
	if strings.Contains(a.screen(), "ALERT") {
		t.Error("the header shows an alert that does not fire yet")
	}
	now[0].State = alert.Firing
	a.Update(tickMsg{})
	holds(t, a, "alert slow first tokens: 612 ms (a lists alerts)")
	for v := range numTabs {
		a.show(v)
		holds(t, a, "ALERT slow first tokens")
	}
	a.show(viewLatency)
	a.press("a", "esc")
	if a.alertsOpen || a.view != viewLatency {
		t.Error("esc does not close the list alone")
	}
}
