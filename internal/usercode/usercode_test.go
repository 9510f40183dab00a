package usercode_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/gocurator/curator/internal/usercode"
)

func TestCallReturnsPanicWithStack(t *testing.T) {
	if err := usercode.Call("the consumer", func() {}); err != nil {
		t.Errorf("without a panic: %v", err)
	}
	err := usercode.Call("the consumer", func() { panic("on purpose") })
	first, stack, _ := strings.Cut(err.Error(), "\n")
	if first != "curator: panic in the consumer: on purpose" || !strings.Contains(stack, "usercode_test.go") {
		t.Errorf("got %v", err)
	}
}

func TestReportPassesPanic(t *testing.T) {
	var reported error
	report := func(where string, err error) { reported = fmt.Errorf("%s: %w", where, err) }
	func() {
		defer usercode.Report("driver", report)
		panic("on purpose")
	}()
	if reported == nil || !strings.HasPrefix(reported.Error(), "driver: curator: panic in driver: on purpose\n") {
		t.Errorf("got %v", reported)
	}
	func() {
		defer usercode.Report("driver", nil)
		panic("on purpose")
	}()
}

func TestWithoutStackIsEqualForEqualPanics(t *testing.T) {
	var texts [2]string
	for i := range texts {
		done := make(chan error)
		go func() { done <- usercode.Call("the codec", func() { panic("on purpose") }) }()
		texts[i] = usercode.WithoutStack(fmt.Errorf("item: %w: at the end", <-done))
	}
	if want := "item: curator: panic in the codec: on purpose: at the end"; texts[0] != want || texts[1] != want {
		t.Errorf("got %q", texts)
	}
	if text := usercode.WithoutStack(errors.New("a\nb")); text != "a\nb" {
		t.Errorf("without a panic: %q", text)
	}
}

func TestLoopGoesOnAfterGoexit(t *testing.T) {
	steps, starts, over := 0, 0, make(chan struct{})
	start := func(fn func()) { starts++; go fn() }
	go usercode.Loop(start, func() bool {
		steps++
		switch steps {
		case 2, 3:
			runtime.Goexit()
		case 5:
			close(over)
			return false
		}
		return true
	})
	<-over
	if steps != 5 || starts != 2 {
		t.Errorf("%d steps, %d more goroutines", steps, starts)
	}
}
