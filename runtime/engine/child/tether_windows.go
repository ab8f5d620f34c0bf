package child

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// attributes keep ctrl+c from the child. It ends when its standard input ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// tether adds a process to a job that ends with this process. If that fails, the process still sees the end of its
// standard input.
func tether(pid int) (untie func()) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return func() {}
	}
	untie = func() { _ = windows.CloseHandle(job) }
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err := windows.SetInformationJobObject(
		job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)),
	); err != nil {
		return untie
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return untie
	}
	defer windows.CloseHandle(process)
	_ = windows.AssignProcessToJobObject(job, process)
	return untie
}

// signal returns "": Windows has no signals, only exit codes.
func signal(*os.ProcessState) string { return "" }
