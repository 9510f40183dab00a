package interop_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/interop"
	"github.com/gocurator/curator/recipes/atomic"
	"github.com/gocurator/curator/retry"
)

const counterPath = "/counters/counter"

// counterPolicy is that of Java's counters.
var counterPolicy = retry.NTimes(10_000, time.Millisecond)

// atomicResult is the result of a change by Java.
type atomicResult struct {
	Succeeded bool  `json:"succeeded"`
	Pre       int64 `json:"pre"`
	Post      int64 `json:"post"`
}

// change calls a command of an atomic number.
func (j *peer) change(cmd string, args interop.Args) (r atomicResult) {
	j.t.Helper()
	args["name"] = "counter"
	j.must(cmd, args, &r)
	return r
}

func TestCounterHasJavasBytes(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	j.must("atomicLongNew", interop.Args{"name": "counter", "path": counterPath}, nil)
	j.must("atomicIntegerNew", interop.Args{"name": "counter", "path": counterPath + "-int"}, nil)
	long := atomic.NewDistributedAtomicLong(client, counterPath, counterPolicy)
	integer := atomic.NewDistributedAtomicInteger(client, counterPath+"-int", counterPolicy)
	want := func(path, bytes string) {
		t.Helper()
		data, err := client.GetData().ForPath(ctx, path)
		if err != nil || hex.EncodeToString(data) != bytes {
			t.Errorf("%s has %x, %v, want %s", path, data, err, bytes)
		}
	}
	if r := j.change("atomicLongAdd", interop.Args{"value": -2}); r != (atomicResult{true, 0, -2}) {
		t.Errorf("Java has %+v", r)
	}
	want(counterPath, "fffffffffffffffe")
	r, err := long.Add(ctx, 1<<40+2)
	if r.Stats = (atomic.Stats{}); err != nil || r != (atomic.Result[int64]{Succeeded: true, Pre: -2, Post: 1 << 40}) {
		t.Errorf("got %+v, %v", r, err)
	}
	want(counterPath, "0000010000000000")
	if r := j.change("atomicLongGet", interop.Args{}); r.Post != 1<<40 {
		t.Errorf("Java has %+v", r)
	}
	if _, err := integer.Subtract(ctx, 3); err != nil {
		t.Error(err)
	}
	want(counterPath+"-int", "fffffffd")
	if r := j.change("atomicIntegerAdd", interop.Args{"value": 4}); r != (atomicResult{true, -3, 1}) {
		t.Errorf("Java has %+v", r)
	}
	if got, err := integer.Get(ctx); err != nil || got != 1 {
		t.Errorf("got %d, %v", got, err)
	}
}

// A remembered version is never a reason to overlook a change of Java's.
func TestCounterChangesInTurn(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	j.must("atomicLongNew", interop.Args{"name": "counter", "path": counterPath}, nil)
	long := atomic.NewDistributedAtomicLong(client, counterPath, counterPolicy)
	ids := atomic.NewCachedAtomicLong(long, 5)
	if r := j.change("atomicLongCompareAndSet", interop.Args{"expected": 0, "value": 1}); r.Succeeded {
		t.Errorf("Java has %+v", r)
	}
	if r, err := long.CompareAndSet(ctx, 0, 1); err != nil || r.Succeeded {
		t.Errorf("got %+v, %v", r, err)
	}
	if !j.truth("atomicLongInitialize", interop.Args{"name": "counter", "value": 0}) {
		t.Error("Java has not initialized it")
	}
	if made, err := long.Initialize(ctx, 7); err != nil || made {
		t.Errorf("initialized: %t, %v", made, err)
	}
	sum := int64(0)
	for i := range int64(5) {
		r, err := long.Add(ctx, i)
		if err != nil || r.Pre != sum {
			t.Errorf("got %+v, %v, want %d", r, err, sum)
		}
		sum += i
		if r := j.change("atomicLongAdd", interop.Args{"value": 10}); r.Pre != sum {
			t.Errorf("Java has %+v, want %d", r, sum)
		}
		sum += 10
		if r, err := long.CompareAndSet(ctx, sum, sum+1); err != nil || !r.Succeeded {
			t.Errorf("got %+v, %v", r, err)
		}
		sum++
		if r := j.change("atomicLongCompareAndSet", interop.Args{"expected": sum, "value": sum + 1}); !r.Succeeded {
			t.Errorf("Java has %+v", r)
		}
		sum++
		if r, err := ids.Next(ctx); i == 0 && (err != nil || r.Pre != sum) {
			t.Errorf("got %+v, %v", r, err)
		} else if i == 0 {
			sum += 5
		}
	}
	if r := j.change("atomicLongNext", interop.Args{"factor": 3}); r.Pre != sum {
		t.Errorf("Java has %+v, want %d", r, sum)
	}
}

func TestAtomicValueOfBoth(t *testing.T) {
	t.Parallel()
	j, client := startBoth(t)
	ctx := testenv.Context(t)
	j.must("atomicValueNew", interop.Args{"name": "value", "path": counterPath}, nil)
	v := atomic.NewDistributedAtomicValue(client, counterPath, counterPolicy)
	if r, err := v.TrySet(ctx, []byte("go")); err != nil || !r.Succeeded {
		t.Errorf("got %+v, %v", r, err)
	}
	if !j.truth("atomicValueCompareAndSet", interop.Args{
		"name": "value", "expected": interop.Bytes("go"), "data": interop.Bytes("java"),
	}) {
		t.Error("Java has not set it")
	}
	if r, err := v.CompareAndSet(ctx, []byte("java"), []byte("both")); err != nil || !r.Succeeded {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := j.text("atomicValueGet", interop.Args{"name": "value"}); got != hex.EncodeToString([]byte("both")) {
		t.Errorf("Java has %s", got)
	}
}

// goStep is what a client of Go adds. The lower half of the number is what those of Java have added, 1 each time.
const goStep = 1 << 32

// TestCountersOfGoAndJavaUnderFaults has four clients of each language count while the connections of all are cut. The
// upper half of the number is exact, up to what is uncertain. The lower half has at least what Java knows; Java counts
// twice when an answer is lost.
func TestCountersOfGoAndJavaUnderFaults(t *testing.T) {
	t.Parallel()
	const each, times, cuts = 4, 50, 100
	ctx := testenv.Context(t)
	connect := testenv.ConnectString(t)
	_, chroot, _ := strings.Cut(connect, "/")
	var proxies []*curatortest.Proxy
	proxied := func() string {
		proxy := curatortest.NewProxyT(t, testenv.Addr(t))
		proxies = append(proxies, proxy)
		return proxy.Addr() + "/" + chroot
	}
	j := startJava(t)
	var java []<-chan error
	succeeded := make([]int64, each)
	var clients []*framework.Client
	for i := range each {
		name := fmt.Sprint("java ", i)
		j.must("start", interop.Args{
			"client": name, "connect": proxied(), "sessionTimeoutMs": 20_000, "retryBaseMs": 1, "retryMax": 29,
		}, nil)
		args := interop.Args{"client": name, "name": name, "path": counterPath}
		if i%2 == 1 {
			args["lockPath"] = "/counters/lock"
		}
		j.must("atomicLongNew", args, nil)
		client := startGo(t, proxied(), framework.WithRetryPolicy(retry.Forever(time.Millisecond)),
			framework.WithoutEnsembleTracker())
		clients = append(clients, client)
	}
	for i := range each {
		java = append(java, j.async("atomicLongCount", interop.Args{"name": fmt.Sprint("java ", i), "times": times},
			&succeeded[i]))
	}
	var mu sync.Mutex
	var acknowledged, uncertain int64
	counting, over := context.WithCancel(ctx)
	defer over()
	var wg sync.WaitGroup
	for i, client := range clients {
		var opts []atomic.Option
		if i%2 == 1 {
			opts = append(opts, atomic.WithReceipts("/counters/receipts"),
				atomic.WithPromotedToLock(atomic.PromotedToLock{Path: "/counters/lock", Policy: counterPolicy}))
		}
		n := atomic.NewDistributedAtomicLong(client, counterPath, retry.Forever(time.Millisecond), opts...)
		wg.Go(func() {
			for counting.Err() == nil {
				r, err := n.Add(ctx, goStep)
				mu.Lock()
				switch {
				case errors.Is(err, atomic.ErrUncertain):
					uncertain++
				case err != nil || !r.Succeeded:
					t.Errorf("got %+v, %v", r, err)
				default:
					acknowledged++
				}
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for i := 0; i < cuts && counting.Err() == nil; i++ {
			proxies[random.IntN(len(proxies))].Faults().CutAll()
			select {
			case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
			case <-counting.Done():
			}
		}
	})
	for _, end := range java {
		if err := <-end; err != nil {
			t.Errorf("Java: %v", err)
		}
	}
	over()
	wg.Wait()
	got, err := atomic.NewDistributedAtomicLong(startGo(t, connect), counterPath, counterPolicy).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs, knownToJava := got/goStep, got%goStep, int64(0)
	for _, n := range succeeded {
		knownToJava += n
	}
	t.Logf("Go: %d, %d acknowledged, %d uncertain; Java: %d, %d acknowledged", ours, acknowledged, uncertain,
		theirs, knownToJava)
	if ours < acknowledged || ours > acknowledged+uncertain {
		t.Errorf("Go has counted %d, %d are acknowledged, %d uncertain", ours, acknowledged, uncertain)
	}
	if theirs < knownToJava {
		t.Errorf("Java has counted %d, and %d are in the number", knownToJava, theirs)
	}
}
