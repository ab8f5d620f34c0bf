package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Command is the hidden command of this program that renders a template. It must call Serve.
const Command = "render-template"

// Limits of a rendering. Real templates take less than a millisecond and a megabyte for a hundred messages.
const (
	patience  = 2 * time.Second
	maxMemory = 64 << 20 // bytes of data besides copies of the messages, and separately of the stack
	watchEach = time.Millisecond
	copies    = 8 // of the messages
)

// Exit codes of the process.
const (
	exitSlow = 3 + iota
	exitLarge
)

var (
	errSlow  = fmt.Errorf("it does not end within %v", patience)
	errLarge = fmt.Errorf("it needs more than %d MB of memory", maxMemory>>20)
)

// Raised is the error of a template that called raise_exception.
type Raised struct{ Message string }

func (r Raised) Error() string { return clean.Cut(r.Message, clean.MaxMessage) }

// job is what the process renders. Contents are bytes, because JSON changes text that is not UTF-8.
type job struct {
	Template Template
	Roles    []string
	Contents [][]byte
	Generate bool // end where the assistant's answer starts
}

// result is what it answers.
type result struct {
	Prompt []byte
	Raised *Raised // the template rejected the messages
	Error  string
}

// render renders in a process of its own.
func (t *Template) render(messages []Message, generate bool) (string, error) {
	j := job{Template: *t, Generate: generate}
	for _, m := range messages {
		j.Roles, j.Contents = append(j.Roles, m.Role), append(j.Contents, []byte(m.Content))
	}
	input, err := json.Marshal(j)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), 5*patience, errSlow) // the process ends itself before, unless the machine is overloaded
	defer stop()
	c := exec.CommandContext(ctx, self, Command)
	c.Args[0] = os.Args[0] // the name by which the program may identify itself
	c.Stdin = bytes.NewReader(input)
	output, err := c.Output()
	ended, unsuccessful := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil || unsuccessful && ended.ExitCode() == exitSlow:
		return "", errSlow
	case unsuccessful && (ended.ExitCode() == exitLarge || tooLarge(ended.Stderr)):
		return "", errLarge
	case err != nil:
		return "", fmt.Errorf("its process failed: %w", err)
	}
	var r result
	if err := json.Unmarshal(output, &r); err != nil {
		return "", fmt.Errorf("read its prompt: %w", err)
	}
	switch {
	case r.Raised != nil:
		return "", *r.Raised
	case r.Error != "":
		return "", errors.New(clean.Cut(r.Error, clean.MaxMessage))
	}
	return string(r.Prompt), nil
}

// tooLarge reports whether Go's runtime ended the process for its memory or its stack.
func tooLarge(stderr []byte) bool {
	return bytes.Contains(stderr, []byte("stack overflow")) || bytes.Contains(stderr, []byte("out of memory"))
}

// Serve is the main function of the process: it reads a job from in and writes the result to out. It ends the process
// if the template takes too long or too much memory.
func Serve(in io.Reader, out io.Writer) error {
	debug.SetMaxStack(maxMemory)
	time.AfterFunc(patience, func() { os.Exit(exitSlow) })
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	go watchMemory(maxMemory + copies*j.size())
	return json.NewEncoder(out).Encode(j.render())
}

// size returns the bytes of the messages.
func (j *job) size() (n uint64) {
	for _, c := range j.Contents {
		n += uint64(len(c))
	}
	return n
}

// watchMemory ends the process once its data take more than limit bytes.
func watchMemory(limit uint64) {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for metrics.Read(heap); heap[0].Value.Uint64() <= limit; metrics.Read(heap) {
		time.Sleep(watchEach)
	}
	os.Exit(exitLarge)
}

// render renders the job. The interpreter's panics are errors.
func (j *job) render() (r result) {
	defer func() {
		if p := recover(); p != nil {
			r = result{Error: fmt.Sprint(p)}
		}
	}()
	template, err := jinja.Compile(strings.TrimSuffix(j.Template.Source, "\n")) // as jinja2 does
	if err != nil {
		return result{Error: strings.TrimPrefix(err.Error(), "jinja ")}
	}
	messages := make([]any, min(len(j.Roles), len(j.Contents)))
	for i := range messages {
		messages[i] = map[string]any{"role": j.Roles[i], "content": string(j.Contents[i])}
	}
	prompt, err := template.RenderValues(map[string]jinja.Value{
		"messages":              jinja.FromGoValue(messages),
		"bos_token":             jinja.NewString(j.Template.BOS),
		"eos_token":             jinja.NewString(j.Template.EOS),
		"add_generation_prompt": jinja.NewBool(j.Generate),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
		"raise_exception":       jinja.NewCallable("raise_exception", raise),
	})
	if refused, ok := errors.AsType[Raised](err); ok {
		return result{Raised: &refused}
	}
	if err != nil {
		return result{Error: err.Error()}
	}
	return result{Prompt: []byte(prompt)}
}

// raise is the function with which a template rejects its messages.
func raise(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	var words []string
	for _, v := range args {
		text := v.String()
		if v.IsString() {
			text = v.AsString() // without quotes
		}
		words = append(words, text)
	}
	return jinja.Undefined(), Raised{strings.Join(words, " ")}
}
