//go:build amd64 || arm64

package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// toggle attaches and detaches the probe of picks. A process of its own does that, since it needs the privileges that
// this one gives up. It reads one byte for each change and knows nothing else. It ends when its input does, also when
// this process is killed; its probe is then detached.
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

// programFD is the descriptor of the BPF program in the process of a toggle.
const programFD = 3

// newToggle starts the process for a program, a function and the process that has it.
func newToggle(program *ebpf.Program, s Symbol, pid int) (*toggle, error) {
	fd, err := program.Clone()
	if err != nil {
		return nil, fmt.Errorf("start probe of picks: %w", err)
	}
	defer fd.Close()
	file := os.NewFile(uintptr(fd.FD()), "program")
	t := &toggle{cmd: exec.Command("/proc/self/exe", ToggleCommand, s.path, s.Name, strconv.Itoa(pid))}
	t.cmd.ExtraFiles = []*os.File{file}
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl+C in a terminal is for this process
	if t.in, err = t.cmd.StdinPipe(); err == nil {
		if t.out, err = t.cmd.StdoutPipe(); err == nil {
			err = t.cmd.Start()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start probe of picks: %w", err)
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
		return fmt.Errorf("switch probe of picks: %w", err)
	}
	if _, err := io.ReadFull(t.out, answer); err != nil {
		return fmt.Errorf("switch probe of picks: %w", err)
	}
	return nil
}

// Close ends the process.
func (t *toggle) Close() error {
	err := t.in.Close()
	return errors.Join(err, t.cmd.Wait())
}

// Toggle is the process of a toggle; see ToggleCommand. It returns when in ends.
func Toggle(in io.Reader, out io.Writer, args []string) (err error) {
	if len(args) != 3 {
		return errors.New("switch probe of picks: needs a file, a function and a process")
	}
	pid, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("switch probe of picks: %w", err)
	}
	program, err := ebpf.NewProgramFromFD(programFD)
	if err != nil {
		return fmt.Errorf("switch probe of picks: %w", err)
	}
	file, err := link.OpenExecutable(args[0])
	if err != nil {
		return fmt.Errorf("switch probe of picks: %w", err)
	}
	var attached link.Link
	request := []byte{0}
	for {
		if _, err := io.ReadFull(in, request); err != nil {
			return nil // the input has ended, and the probe with this process
		}
		switch on := request[0] == toggleOn; {
		case on && attached == nil:
			attached, err = file.Uprobe(args[1], program, &link.UprobeOptions{PID: pid})
		case !on && attached != nil:
			err = attached.Close()
			attached = nil
		}
		if err != nil {
			return fmt.Errorf("switch probe of picks: %w", err)
		}
		if _, err := out.Write([]byte{toggleDone}); err != nil {
			return nil
		}
	}
}
