package cli

import (
	"strings"
	"testing"

	"github.com/gocurator/curator/codec"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/internal/testenv/testclient"
	"github.com/gocurator/curator/recipes/queue"
)

func TestQueueListsAndPeeks(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	q, err := queue.NewBuilder[string](client, nil, codec.Text{}, "/q").BuildPriorityQueue(0)
	testclient.Must(t, err)
	testclient.Must(t, q.Start())
	t.Cleanup(func() { testclient.Must(t, q.Close()) })
	testclient.Must(t, q.Put(t.Context(), "later", 7))
	testclient.Must(t, q.PutMulti(t.Context(), -1, "first\x00", "second"))
	testclient.Must(t, q.FlushPuts(t.Context()))

	got := invoke(t.Context(), []string{"queue", "ls", "/q"}, environ...)
	lines := strings.Split(got.stdout, "\n")
	if len(lines) != 4 || strings.Fields(lines[1])[1] != "-1" || strings.Fields(lines[2])[1] != "7" {
		t.Errorf("queue ls: %+v", got)
	}
	got = invoke(t.Context(), []string{"queue", "ls", "/q", "-n", "1"}, environ...)
	if strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("queue ls -n 1: %+v", got)
	}
	expect(t, environ, "queue peek /q", "first\x00\nsecond\n")
	expect(t, environ, "queue peek /q -n 9", "first\x00\nsecond\nlater\n")
	got = invoke(t.Context(), []string{"queue", "peek", "/q", "-o", "json"}, environ...)
	if !strings.Contains(got.stdout, `"items":[{"data":"first\u0000"},{"data":"second"}]`) {
		t.Errorf("queue peek -o json: %+v", got)
	}
	expect(t, environ, "queue peek /q -n 9", "first\x00\nsecond\nlater\n") // it is all still there

	simple := queue.NewSimpleDistributedQueue(client, "/simple")
	testclient.Must(t, simple.Offer(t.Context(), []byte("plain")))
	expect(t, environ, "queue peek /simple", "plain\n")
	for args, code := range map[string]int{
		"queue ls /none": CodeNoNode, "queue ls /": CodeUsage, "queue peek": CodeUsage,
	} {
		if got := invoke(t.Context(), strings.Fields(args), environ...); got.code != code {
			t.Errorf("%s: %+v, want code %d", args, got, code)
		}
	}
}

func TestServicesPrintsInstances(t *testing.T) {
	environ, connect := connected(t)
	client := testclient.Connect(t, connect)
	services := discovery.New[struct{}](client, "/services")
	testclient.Must(t, services.Start())
	in := discovery.NewServiceInstance[struct{}]("shop", "10.0.0.1", 8080)
	in.ID = "i-1"
	testclient.Must(t, services.Register(t.Context(), in))
	got := invoke(t.Context(), []string{"services"}, environ...)
	lines := strings.Split(got.stdout, "\n")
	const want = "/services/shop i-1 10.0.0.1:8080 "
	if len(lines) != 3 || !strings.HasPrefix(strings.Join(strings.Fields(lines[1]), " "), want) {
		t.Errorf("services: %+v", got)
	}
	testclient.Must(t, services.Close(t.Context()))
	got = invoke(t.Context(), []string{"services", "/services", "-o", "json"}, environ...)
	if got.stdout != "" || got.code != CodeOK {
		t.Errorf("services after the end: %+v", got)
	}
}
