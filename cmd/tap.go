package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/cmd/watch"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/tap"
)

// tapping are the flags and arguments of the tap command.
type tapping struct {
	watch.Options
	tap   tap.Options
	live  uint16 // port to tap on this machine; 0: packets come from a file or a pipe
	file  string // of packets; "": none
	notes io.Writer
}

func newTapCommand() *cobra.Command {
	var opts tapping
	c := &cobra.Command{
		Use:   "tap PORT | - | FILE [PORT]",
		Short: "Measure the requests to any HTTP server from its packets",
		Long: `tap reads the packets between an inference server and its clients, and shows each request that
generates, with the kernel's time of each token. Server and clients are neither changed nor
restarted, and notice nothing. It reads the APIs that llmtop proxy reads, without encryption.

With a PORT it reads packets live on Linux. That needs root, which it gives up for the user who
called sudo before it reads the first packet; a server on this machine is polled too, as attach
does. - reads a capture from a pipe, so that only tcpdump runs as root. A FILE is shown as replay
shows a recording, or reported at once with --headless.
tap does not keep, show or record texts or keys.`,
		Example: `  sudo llmtop tap 8000
  sudo tcpdump -i any -U -w - port 8000 | llmtop tap -
  kubectl exec POD -- tcpdump -i any -U -w - port 8000 | llmtop tap -

  llmtop tap capture.pcap
  llmtop tap capture.pcap 8000 --headless --out report.json`,
		Args: takes(1, 2, "tap needs what to read: a port, - for a pipe, or a file of packets: sudo llmtop tap 8000"),
		RunE: func(c *cobra.Command, args []string) error {
			opts.Stdout, opts.notes = c.OutOrStdout(), c.ErrOrStderr()
			opts.Options.Notes = opts.notes
			if err := opts.parse(args); err != nil {
				return err
			}
			return opts.run(c.Context())
		},
	}
	opts.BindTap(c)
	bindAnswers(c.Flags(), &opts.tap.GroupHeader, &opts.tap.ExpertsUsed)
	return c
}

// parse reads the arguments. The name of a file that exists is a file, also if it is a number.
func (o *tapping) parse(args []string) error {
	port := func(text string) (uint16, bool) {
		n, err := strconv.ParseUint(strings.TrimPrefix(text, ":"), 10, 16)
		return uint16(n), err == nil && n > 0
	}
	_, absent := os.Stat(args[0])
	n, isPort := port(args[0])
	_, notNumber := strconv.Atoi(args[0])
	switch {
	case len(args) == 1 && isPort && absent != nil:
		o.live, o.tap.Port = n, n
		return nil
	case args[0] != "-" && absent != nil && (notNumber == nil || strings.Contains(args[0], ":")):
		return exit.Usagef("tap %s: tap takes one port of this machine: sudo llmtop tap 8000", strings.Join(args, " "))
	case args[0] != "-":
		o.file = args[0]
	}
	if len(args) == 2 {
		n, ok := port(args[1])
		if !ok {
			return exit.Usagef("tap %s: the second argument is the port of the server in the capture, such as 8000", args[1])
		}
		o.tap.Port = n
	}
	return nil
}

func (o *tapping) run(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // 100 MB of streams are too much to look through as often as gcPercent says
	}
	if o.file != "" {
		return o.replay(ctx)
	}
	o.tap.Clock = engine.NewClock()
	if o.live == 0 {
		pipe, err := console.TakeInput()
		if err != nil {
			return exit.Usagef("tap -: %w: pipe a capture into it: sudo tcpdump -i any -U -w - port 8000 | llmtop tap -", err)
		}
		o.tap.From, o.tap.Follow, o.tap.Clock = pipe, true, engine.NewClockAhead()
	}
	t, err := tap.New(o.tap)
	switch {
	case o.live == 0 && err != nil:
		return exit.Usagef("tap -: %w", err)
	case errors.Is(err, os.ErrPermission):
		return exit.Usagef("%w; or sudo tcpdump -i any -U -w - port %d | llmtop tap -", needsRoot(fmt.Errorf("tap %d: reading packets needs root", o.live)), o.live)
	case err != nil: // it says what to do on other systems
		return exit.Usagef("tap %d: %w", o.live, err)
	}
	if o.live != 0 {
		if err := watch.DropRoot(); err != nil {
			return errors.Join(err, t.Close())
		}
	}
	o.Out.Warnings = t.Warnings
	defer o.Out.PrintWarnings(o.notes)
	return o.Tap(ctx, t, o.live, o.tap.Clock)
}

// replay reads a file of packets into a recording, and replays or reports that.
func (o *tapping) replay(ctx context.Context) error {
	file, err := os.Open(o.file)
	if err != nil {
		return exit.Usagef("tap %s: %w", o.file, files.Cause(err))
	}
	defer file.Close()
	o.tap.From = bufio.NewReaderSize(file, 1<<20)
	t, err := tap.New(o.tap)
	if err != nil {
		return exit.Usagef("tap %s: %w", o.file, err)
	}
	running, stop := exit.WithSignals(ctx, exit.ErrInterrupted)
	open, err := recording.Fill(o.Out.Name(files.Recording), recording.RecordOptions{
		Program: "llmtop " + version.String(), Conditions: &recording.Conditions{Settings: map[string]string{"tap": o.file}},
	}, func(sink event.Sink) error { return t.Run(running, sink) })
	interrupted := running.Err() != nil
	stop()
	o.Out.Warnings = t.Warnings
	defer o.Out.PrintWarnings(o.notes)
	switch {
	case interrupted:
		return exit.ErrInterrupted
	case err != nil:
		return exit.Usagef("tap %s: %w", o.file, err)
	}
	if _, _, measured := t.Counts(); measured == 0 {
		return o.nothing(t)
	}
	return playback.New(&o.View, o.Out).Play(ctx, o.file, open, o.Stdout, o.notes)
}

// nothing returns the error for a capture without requests that generate.
func (o *tapping) nothing(t *tap.Tap) error {
	connections, passed, _ := t.Counts()
	in := ""
	if o.tap.Port != 0 {
		in = fmt.Sprintf(" at port %d", o.tap.Port)
	}
	switch {
	case connections == 0 && o.tap.Port != 0:
		return exit.Usagef("tap %s: no TCP connection%s%s", o.file, in, o.otherPorts())
	case connections == 0:
		return exit.Usagef("tap %s: no TCP connection in this capture", o.file)
	case passed == 0:
		return exit.Usagef("tap %s: no HTTP request%s in %d connections: of encrypted ones nothing can be seen; capture behind the proxy that ends the encryption", o.file, in, connections)
	}
	return exit.Usagef("tap %s: none of the %d HTTP requests%s generates", o.file, passed, in)
}

// otherPorts returns the ports of the capture that had HTTP, as the end of an error; "" if there are none.
func (o *tapping) otherPorts() string {
	file, err := os.Open(o.file)
	if err != nil {
		return ""
	}
	defer file.Close()
	all, err := tap.New(tap.Options{From: bufio.NewReaderSize(file, 1<<20)})
	if err != nil || all.Run(context.Background(), event.Tee{}) != nil {
		return ""
	}
	var ports []string
	for _, at := range all.Servers() {
		if port := strconv.Itoa(int(at.Port())); !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	if len(ports) == 0 {
		return ", and no HTTP at any other"
	}
	return ": HTTP was at port " + strings.Join(ports, ", ")
}
