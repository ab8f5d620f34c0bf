//go:build amd64 || arm64

package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// toggle attaches and detaches probes that are not always needed. A process of its own does that, since it needs the privileges that
// this one gives up. It reads one byte for each change and knows nothing else. It ends when its input does, also when
// this process is killed; its probes are then detached. It detaches them also if it is not asked for them again in time.
type toggle struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

// The bytes of a toggle: requests, and the answer when it is done.
const (
	toggleOn   = '+'
	toggleOff  = '-'
	toggleDone = '.'
)

// programFD is the descriptor of the first BPF program in the process of a toggle.
const programFD = 3

// switched is a probe that a toggle attaches and detaches.
type switched struct {
	program *ebpf.Program
	at      Symbol
	returns bool // it is attached where the function returns
}

// returnMark is before the name of a function whose return is probed.
const returnMark = "return of "

// newToggle starts the process of a toggle.
func newToggle(probes []switched, pid int) (*toggle, error) {
	t := &toggle{cmd: exec.Command("/proc/self/exe", ToggleCommand, strconv.Itoa(pid))}
	for _, p := range probes {
		fd, err := unix.FcntlInt(uintptr(p.program.FD()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("start sampled probes: %w", err)
		}
		file := os.NewFile(uintptr(fd), "program")
		defer file.Close()
		t.cmd.ExtraFiles = append(t.cmd.ExtraFiles, file)
		name := p.at.Name
		if p.returns {
			name = returnMark + name
		}
		t.cmd.Args = append(t.cmd.Args, p.at.path, name)
	}
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl+C in a terminal is for this process
	var err error
	if t.in, err = t.cmd.StdinPipe(); err == nil {
		if t.out, err = t.cmd.StdoutPipe(); err == nil {
			err = t.cmd.Start()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start sampled probes: %w", err)
	}
	return t, nil
}

// set attaches or detaches the probe.
func (t *toggle) set(on bool) error {
	request, answer := []byte{toggleOff}, []byte{0}
	if on {
		request[0] = toggleOn
	}
	if _, err := t.in.Write(request); err != nil {
		return fmt.Errorf("switch sampled probes: %w", err)
	}
	if _, err := io.ReadFull(t.out, answer); err != nil {
		return fmt.Errorf("switch sampled probes: %w", err)
	}
	return nil
}

// Close ends the process.
func (t *toggle) Close() error {
	err := t.in.Close()
	return errors.Join(err, t.cmd.Wait())
}

// Toggle is the process of a toggle; see ToggleCommand. It returns when in ends.
func Toggle(in io.Reader, out io.Writer, args []string) error {
	h, err := newHolder(args)
	if err != nil {
		return fmt.Errorf("switch sampled probes: %w", err)
	}
	requests := make(chan byte)
	go func() {
		defer close(requests)
		request := []byte{0}
		for {
			if _, err := io.ReadFull(in, request); err != nil {
				return // the input has ended, and the probes with this process
			}
			requests <- request[0]
		}
	}()
	lease := time.NewTimer(0)
	for {
		select {
		case request, ok := <-requests:
			if !ok {
				return nil
			}
			if request == toggleOn {
				lease.Reset(time.Duration(pickLease))
				err = h.attach()
			} else {
				err = h.detach()
			}
			if err == nil {
				_, err = out.Write([]byte{toggleDone})
			}
		case <-lease.C:
			err = h.detach()
		}
		if err != nil {
			return fmt.Errorf("switch sampled probes: %w", err)
		}
	}
}

// holder holds the probes of a toggle.
type holder struct {
	pid      int
	programs []*ebpf.Program
	files    []*link.Executable
	names    []string // of the functions
	attached []link.Link
}

// newHolder opens the programs and files that the arguments of a toggle name.
func newHolder(args []string) (h *holder, err error) {
	h = &holder{}
	if len(args) < 3 || len(args)%2 == 0 {
		return nil, errors.New("needs a process, files and functions")
	}
	if h.pid, err = strconv.Atoi(args[0]); err != nil {
		return nil, err
	}
	for i := 1; i < len(args); i += 2 {
		program, err := ebpf.NewProgramFromFD(programFD + i/2)
		if err != nil {
			return nil, err
		}
		file, err := link.OpenExecutable(args[i])
		if err != nil {
			return nil, err
		}
		h.programs, h.files, h.names = append(h.programs, program), append(h.files, file), append(h.names, args[i+1])
	}
	return h, nil
}

// attach attaches the probes, unless they are.
func (h *holder) attach() error {
	for i := len(h.attached); i < len(h.names); i++ {
		attach, name := h.files[i].Uprobe, h.names[i]
		if of, ok := strings.CutPrefix(name, returnMark); ok {
			attach, name = h.files[i].Uretprobe, of
		}
		l, err := attach(name, h.programs[i], &link.UprobeOptions{PID: h.pid})
		if err != nil {
			return err
		}
		h.attached = append(h.attached, l)
	}
	return nil
}

// detach detaches the probes.
func (h *holder) detach() error {
	var errs []error
	for _, l := range h.attached {
		errs = append(errs, l.Close())
	}
	h.attached = nil
	return errors.Join(errs...)
}
