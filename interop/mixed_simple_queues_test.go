package interop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/queue"
)

// simpleEnd is a client's end of a simple queue.
type simpleEnd struct {
	name  string
	offer func(ctx context.Context, data []byte) error
	get   map[string]func(context.Context) ([]byte, error) // by what Java calls it
}

func openSimple(s side, path string) *simpleEnd {
	if s, ok := s.(golang); ok {
		q := queue.NewSimpleDistributedQueue(s.Client, path)
		return &simpleEnd{"Go", q.Offer, map[string]func(context.Context) ([]byte, error){
			"Poll": q.Poll, "Take": q.Take, "Remove": q.Remove, "Peek": q.Peek, "Element": q.Element,
		}}
	}
	o := s.(*peer).newObject("simpleQueue", "simpleQueueNew", interop.Args{"path": path})
	e := &simpleEnd{name: "Java", get: make(map[string]func(context.Context) ([]byte, error))}
	e.offer = func(ctx context.Context, data []byte) error {
		return o.j.Call(ctx, o.kind+"Offer", o.args(interop.Args{"data": interop.Bytes(data)}), nil)
	}
	for _, op := range []string{"Poll", "Take", "Remove", "Peek", "Element"} {
		e.get[op] = func(ctx context.Context) (data []byte, err error) {
			err = o.j.Call(ctx, o.kind+op, o.args(nil), (*interop.Bytes)(&data))
			var remote *interop.RemoteError
			if errors.As(err, &remote) && remote.Class == "NoSuchElementException" {
				err = queue.ErrEmpty
			}
			return data, err
		}
	}
	return e
}

// TestGoAndJavaGetEachOthersElements offers elements on one side and takes them on the other, with every method.
func TestGoAndJavaGetEachOthersElements(t *testing.T) {
	forBothWays(t, func(t *testing.T, m *meeting, first, second side) {
		path := newSpot(false).items
		giver, taker := openSimple(first, path), openSimple(second, path)
		gets := func(op, want string, wantErr error) {
			t.Helper()
			got, err := taker.get[op](m.ctx)
			if fmt.Sprintf("%q", got) != want || !errors.Is(err, wantErr) {
				t.Errorf("%s by %s: %q, %v, want %s, %v", op, taker.name, got, err, want, wantErr)
			}
		}
		offers := func(data string) {
			t.Helper()
			if err := giver.offer(m.ctx, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		none := `""`
		for range 2 { // at first there is no path
			gets("Poll", none, nil)
			gets("Peek", none, nil)
			gets("Remove", none, queue.ErrEmpty)
			gets("Element", none, queue.ErrEmpty)
			for _, data := range []string{"a", "", "c\x00\xff", "d"} {
				offers(data)
			}
			gets("Peek", `"a"`, nil)
			gets("Element", `"a"`, nil)
			gets("Poll", `"a"`, nil)
			gets("Take", none, nil)
			gets("Remove", `"c\x00\xff"`, nil)
			gets("Take", `"d"`, nil)
		}
		taken := make(chan string, 1)
		go func() {
			data, err := taker.get["Take"](m.ctx)
			taken <- fmt.Sprintf("%q, %v", data, err)
		}()
		if took, err := openSimple(first, path).get["Poll"](m.ctx); took != nil || err != nil {
			t.Errorf("polled %q, %v", took, err)
		}
		offers("at last")
		if got, err := receive(m.ctx, taken); got != `"at last", <nil>` || err != nil {
			t.Errorf("%s took %s, %v", taker.name, got, err)
		}
	})
}

// TestNodesOfSimpleQueuesAreThoseOfJava has both offer the same.
func TestNodesOfSimpleQueuesAreThoseOfJava(t *testing.T) {
	t.Parallel()
	m := meet(t, 1)
	var all [2][]nodeProperties
	for i, s := range m.sides {
		at := newSpot(false)
		e := openSimple(s, at.items)
		for _, data := range []string{"a", "", "c\x00\xff"} {
			if err := e.offer(m.ctx, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		all[i] = m.propertiesAt(at)
	}
	if diff := cmp.Diff(all[1], all[0]); diff != "" || len(all[1]) != 4 {
		t.Errorf("nodes of Java %+v (-Java +Go):\n%s", all[1], diff)
	}
}

// TestGoAndJavaTakeEveryElementOnce lets two clients of Go and two of Java offer and take elements.
func TestGoAndJavaTakeEveryElementOnce(t *testing.T) {
	t.Parallel()
	testenv.RequireReal(t)
	const share = 125
	m := meet(t, 2)
	path := newSpot(false).items
	var there, takers, givers sync.WaitGroup // there: the takers that wait for the others
	there.Add(len(m.sides))
	taken := make(chan string, 10_000)
	for i, s := range m.sides {
		e := openSimple(s, path)
		offer := func(element string) {
			if err := e.offer(m.ctx, []byte(element)); err != nil {
				t.Error(err)
			}
		}
		takers.Go(func() {
			for n := 0; ; n++ {
				data, err := e.get["Take"](m.ctx)
				if err != nil {
					t.Error(err)
				}
				taken <- string(data)
				if n == 0 {
					there.Done()
					there.Wait()
				}
				if err != nil || strings.HasPrefix(string(data), "last") {
					return
				}
			}
		})
		givers.Go(func() {
			offer(fmt.Sprint("first ", i))
			there.Wait()
			for k := range share {
				offer(fmt.Sprint(i, " ", k))
			}
		})
	}
	givers.Wait()
	end := openSimple(m.sides[0], path)
	for i := range m.sides { // each side takes one
		if err := end.offer(m.ctx, fmt.Append(nil, "last ", i)); err != nil {
			t.Error(err)
		}
	}
	takers.Wait()
	close(taken)
	times := make(map[string]int)
	for element := range taken {
		times[element]++
	}
	for element, n := range times {
		if n != 1 {
			t.Errorf("%q is taken %d times", element, n)
		}
	}
	if want := (share + 2) * len(m.sides); len(times) != want {
		t.Errorf("%d elements are taken, of %d", len(times), want)
	}
}
