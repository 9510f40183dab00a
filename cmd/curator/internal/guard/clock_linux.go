package guard

import (
	"os"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was started, with that of suspensions.
func Now() Time {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // of a clock that exists there is no error
	return Time(ts.Nano())
}

// Timer is a timer of the clock of Now. Timers of package time stand still while the machine is suspended.
type Timer struct {
	C    <-chan struct{}
	file *os.File
	fd   int
}

// NewTimer returns a timer that is not set.
func NewTimer() (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	c := make(chan struct{}, 1)
	t := &Timer{C: c, file: os.NewFile(uintptr(fd), "timer"), fd: fd}
	go func() {
		buf := make([]byte, 8)
		for {
			if _, err := t.file.Read(buf); err != nil {
				return
			}
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}()
	return t, nil
}

// Set lets the timer fire at a time, at once if that has passed. It replaces the time of before.
func (t *Timer) Set(at Time) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(at, 1)))} // 0 would disarm it
	_ = unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

// Stop ends the timer.
func (t *Timer) Stop() { _ = t.file.Close() }
