package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// ReadModel returns what the header of a model file says: GGUF, or safetensors with the config.json beside them. The file
// has the name that the processes of an engine use for it, the main one first, which may have another root or working
// directory. It fails with ErrChanged for a file that was changed or replaced after the process that uses it started,
// and for a file that this user may not read.
func ReadModel(pids []int, name string) (m event.Model, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped, and may be truncated
	defer func() {
		if p := recover(); p != nil {
			m, err = event.Model{}, fmt.Errorf("read model: %v", p)
		}
	}()
	pid, mapped, err := userOf(pids, name)
	if err != nil {
		return m, fmt.Errorf("read model: %w", err)
	}
	path := seenBy(pid, name)
	if err := unchanged(pid, path, mapped); err != nil {
		return m, fmt.Errorf("read model %s: %w", name, err)
	}
	if head, _ := readHead(path); string(head) == "GGUF" {
		if m, err = readGGUF(path); !halfKV(pid) {
			m.KVBytes = 0
		}
	} else {
		m, err = readSafetensors(path)
	}
	if err != nil {
		return event.Model{}, fmt.Errorf("read model: %w", err)
	}
	m.Path = name
	return m, nil
}

// seenBy returns the path of a file that a process names so.
func seenBy(pid int, name string) string {
	from := "root"
	if !filepath.IsAbs(name) {
		from = "cwd"
	}
	return filepath.Join("/proc", strconv.Itoa(pid), from, name)
}

func readHead(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 4)
	_, err = f.Read(head)
	return head, err
}

func readGGUF(path string) (event.Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return event.Model{}, err
	}
	defer f.Close()
	return f.Describe(), nil
}

// userOf returns the process that has mapped a file, or else has it on its command line, or else the first one. mapped
// reports the first case.
func userOf(pids []int, name string) (pid int, mapped bool, err error) {
	if len(pids) == 0 {
		return 0, false, errors.New("its process is unknown")
	}
	for _, p := range pids {
		if info, err := os.Stat(seenBy(p, name)); err == nil && isMapped(p, info) {
			return p, true, nil
		}
	}
	for _, p := range pids {
		if slices.ContainsFunc(arguments(p, "cmdline"), func(arg string) bool { return arg == name || strings.HasSuffix(arg, "="+name) }) {
			return p, false, nil
		}
	}
	return pids[0], false, nil
}

// isMapped reports whether a process has mapped a file.
func isMapped(pid int, info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return false
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
	if err != nil {
		return false
	}
	device := fmt.Sprintf("%02x:%02x", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 4 && string(f[3]) == device && string(f[4]) == strconv.FormatUint(stat.Ino, 10) {
			return true
		}
	}
	return false
}

// arguments returns the words of a file of a process that ends each with a zero byte.
func arguments(pid int, file string) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// unchanged returns an error if a file, or what is beside it in its folder, may be another one than when a process
// started. A mapped file may have been linked or renamed since.
func unchanged(pid int, path string, mapped bool) error {
	at, ok := started(pid)
	var boot unix.Timespec
	if !ok || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return fmt.Errorf("process %d has ended", pid)
	}
	const tick = time.Second / ticks
	began := time.Now().Add(time.Duration(at+1)*tick - time.Duration(boot.Nano()))
	all := []string{path}
	if !mapped {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if info.IsDir() {
			dir = path
		}
		if info.IsDir() || strings.Contains(filepath.Base(path), ".safetensors") {
			beside, _ := filepath.Glob(filepath.Join(dir, "*.safetensors*"))
			all = append(beside, filepath.Join(dir, "config.json"))
		}
	}
	for _, name := range all {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) && name != path {
			continue
		}
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || info.ModTime().After(began) || !mapped && time.Unix(stat.Ctim.Unix()).After(began) {
			return ErrChanged
		}
	}
	return nil
}

// halfKV reports whether a process surely keeps keys and values as 16-bit floats: it is a llama-server or an Ollama whose
// arguments and environment leave their types alone.
func halfKV(pid int) bool {
	args, env := arguments(pid, "cmdline"), arguments(pid, "environ")
	if len(args) == 0 || len(env) == 0 {
		return false
	}
	if program := filepath.Base(args[0]); program != "llama-server" && program != "ollama" {
		return false
	}
	return !slices.ContainsFunc(append(args, env...), func(word string) bool {
		word = strings.ToLower(strings.ReplaceAll(word, "_", "-"))
		return strings.Contains(word, "cache-type") || strings.HasPrefix(word, "-ctk") || strings.HasPrefix(word, "-ctv")
	})
}
