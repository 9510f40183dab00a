package docs_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/curatortest"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/internal/testenv"
)

// javaInstance is what JsonInstanceSerializer of Java Curator 5.4.0 writes.
const javaInstance = `{"name":"orders","id":"i-7","address":"10.0.0.7","port":8080,"sslPort":null,"payload":"eu",` +
	`"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}`

// springsInstance is a node of spring-cloud-zookeeper.
const springsInstance = `{"name":"orders","id":"i-7","address":"10.0.0.7","port":8080,"sslPort":null,"payload":` +
	`{"@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"orders-1","name":"orders",` +
	`"metadata":{}},"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":{"parts":[` +
	`{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},` +
	`{"value":":","variable":false},{"value":"port","variable":true}]}}`

// Each fault of Java has its row, and the row a test that exists.
func TestDiscoveryPageNamesTestOfEachFault(t *testing.T) {
	t.Parallel()
	tests := declarationsIn(t, true, "../discovery")
	rows := regexp.MustCompile("(?m)^\\| (SD\\d+) \\|.* `(Test(SD\\d+)[A-Z]\\w+)` \\|$").
		FindAllStringSubmatch(readPage(t, "discovery.md"), -1)
	if len(rows) != 14 {
		t.Errorf("%d rows", len(rows))
	}
	for _, row := range rows {
		if fault, test, of := row[1], row[2], row[3]; of != fault || !tests[test] {
			t.Errorf("%s has no test %s", fault, test)
		}
	}
}

func TestDiscoveryPageHasBytesOfJava(t *testing.T) {
	t.Parallel()
	if !strings.Contains(readPage(t, "discovery.md"), "\n"+javaInstance+"\n") {
		t.Error("the page has other bytes")
	}
	at := time.UnixMilli(1700000000000)
	text := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
	text.ID, text.RegistrationTime, text.Payload = "i-7", at, "eu"
	serializer, err := discovery.NewInstanceSerializer[string]()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := serializer.Encode(text); err != nil || string(got) != javaInstance {
		t.Errorf("%s, %v\nis not\n%s", got, err, javaInstance)
	}
	if got := uriOf(text); got != "http://10.0.0.7:8080" {
		t.Errorf("the URI is %s", got)
	}
	meta := discovery.NewServiceInstance[Meta]("orders", "10.0.0.7", 8080)
	meta.Payload = Meta{Zone: "eu", Weight: 2}
	const payload = `"payload":{"@class":"com.acme.Meta","zone":"eu","weight":2.0}`
	if got, err := encodeMeta(meta); err != nil || !strings.Contains(got, payload) {
		t.Errorf("%s, %v\nhas no\n%s", got, err, payload)
	}
}

func TestDiscoveryWithoutPayloadClassDoesNotStart(t *testing.T) {
	t.Parallel()
	_, client := connect(t)
	if err := discovery.New[Meta](client, "/services").Start(); !errors.Is(err, framework.ErrBadArguments) {
		t.Errorf("Start: %v", err)
	}
	services := servicesOfMeta(client)
	if err := services.Start(); err != nil {
		t.Fatal(err)
	}
	if err := weighOrders(services, "eu").Start(testenv.Context(t)); err != nil {
		t.Error(err)
	}
	if err := services.Close(testenv.Context(t)); err != nil {
		t.Error(err)
	}
}

func TestOfferedInstanceIsCalledAndDrained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a drain takes its time
		server, client := connect(t)
		ctx := testenv.Context(t)
		err := offer(ctx, client, func(services *textServices, instance textInstance) error {
			path := "/services/orders/" + instance.ID
			if err := callOrders(ctx, services); err != nil {
				t.Error(err)
			}
			looking, stop := context.WithCancel(ctx)
			looked := make(chan error, 1)
			go func() { looked <- lookAtOrders(looking, services) }()
			before := time.Now()
			if err := drain(ctx, services, instance); err != nil {
				t.Error(err)
			}
			if took := time.Since(before); took < 10*time.Second || server.Exists(path) {
				t.Errorf("drained in %v", took)
			}
			stop()
			if err := <-looked; err != nil {
				t.Error(err)
			}
			return closeServices(ctx, services)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestSpringsInstanceIsReadAndWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := connect(t)
		ctx := testenv.Context(t)
		services := besideSpring(client)
		if err := services.Start(); err != nil {
			t.Fatal(err)
		}
		mine, err := offerToSpring(ctx, services)
		if err != nil {
			t.Fatal(err)
		}
		node, _ := server.Node("/services/orders/" + mine.ID)
		_, got, _ := strings.Cut(string(node.Data), `"payload":`)
		_, want, _ := strings.Cut(springsInstance, `"payload":`)
		withoutTime := regexp.MustCompile(`"registrationTimeUTC":\d+`)
		if withoutTime.ReplaceAllString(got, "") != withoutTime.ReplaceAllString(want, "") {
			t.Errorf("%s\nis not\n%s", got, want)
		}
		if _, err := client.Create().ForPath(ctx, "/services/orders/i-7", []byte(springsInstance)); err != nil {
			t.Fatal(err)
		}
		theirs, err := services.Instance(ctx, "orders", "i-7")
		if err != nil || theirs.Payload.ID != "orders-1" || theirs.URI(nil) != "http://10.0.0.7:8080" {
			t.Errorf("read: %+v, %v", theirs, err)
		}
		orders := providerOfSpring(services)
		if err := orders.Start(ctx); err != nil {
			t.Fatal(err)
		}
		drained := make(chan error, 1)
		go func() { drained <- drainBesideSpring(ctx, services, mine) }()
		testenv.Eventually(t, func() bool {
			all := orders.AllInstances()
			return len(all) == 1 && all[0].ID == "i-7"
		}, "the provider leaves out what is out of service")
		if !server.Exists("/services/orders/" + mine.ID) {
			t.Error("it is gone before the pause")
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := services.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// The ACL of the parents decides who may add an instance.
func TestACLOfParentsGuardsServices(t *testing.T) {
	t.Parallel()
	server := curatortest.NewServerT(t)
	client, err := guardServices(server.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	other, err := framework.New(server.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for _, c := range []*framework.Client{client, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := testenv.Context(t)
	err = offer(ctx, client, func(services *textServices, instance textInstance) error {
		for _, path := range []string{"/services/orders/x", "/services/x"} {
			if _, err := other.Create().ForPath(ctx, path, []byte(javaInstance)); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("a stranger creates %s: %v", path, err)
			}
		}
		theirs := discovery.New[string](other, "/services")
		if err := theirs.Start(); err != nil {
			return err
		}
		if found, err := theirs.Instance(ctx, "orders", instance.ID); err != nil || found.Payload != "eu" {
			t.Errorf("a stranger reads %+v, %v", found, err)
		}
		err := theirs.Register(ctx, discovery.NewServiceInstance[string]("orders", "10.0.0.8", 1))
		if !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger registers: %v", err)
		}
		return errors.Join(theirs.Close(ctx), services.Close(ctx))
	})
	if err != nil {
		t.Error(err)
	}
}
