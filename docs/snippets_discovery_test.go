package docs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gocurator/curator/builders"
	"github.com/gocurator/curator/discovery"
	"github.com/gocurator/curator/discovery/rest"
	"github.com/gocurator/curator/framework"
)

var _ = []any{
	registerAndClose, changeServices, queryServices, followOrders, stickyProvider, chooseOnce,
	first{},
	serve, purge,
	serveAsJava,
}

// What the snippets call.
var (
	call   = func(ctx context.Context, address string, port int) error { return ctx.Err() }
	forget = func(path string) {}
	keep   = func(path string, instance discovery.ServiceInstance[string]) {}
)

// Short names.
type (
	textServices   = discovery.ServiceDiscovery[string]
	textInstance   = discovery.ServiceInstance[string]
	springServices = discovery.ServiceDiscovery[ZookeeperInstance]
	springInstance = discovery.ServiceInstance[ZookeeperInstance]
)

// Meta is a payload of the program.
type Meta struct {
	Zone   string  `json:"zone"`
	Weight float64 `json:"weight"`
}

func offer(ctx context.Context, client *framework.Client, then func(*textServices, textInstance) error) error {
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		return err
	}
	instance := discovery.NewServiceInstance[string]("orders", "10.0.0.7", 8080)
	instance.Payload = "eu"
	if err := services.Register(ctx, instance); err != nil {
		return err // with the reason; it is registered as soon as that is possible
	}
	return then(services, instance)
}

func drain(ctx context.Context, services *textServices, instance textInstance) error {
	err := services.Drain(ctx, instance, 10*time.Second) // disabled, then a pause, then away
	return err
}

func closeServices(ctx context.Context, services *textServices) error {
	err := services.Close(ctx)
	return err
}

func callOrders(ctx context.Context, services *textServices) error {
	orders := services.Provider("orders")
	if err := orders.Start(ctx); err != nil { // it knows the instances
		return err
	}
	pick, err := orders.Pick(ctx) // waits until there is one
	if err != nil {
		return err
	}
	err = call(ctx, pick.Instance.Address, pick.Instance.Port)
	pick.Done(err) // an error counts against the instance
	return err
}

func lookAtOrders(ctx context.Context, services *textServices) error {
	orders := services.Cache("orders")
	if err := orders.Start(ctx); err != nil { // the instances are known
		return err
	}
	for _, instance := range orders.Instances() {
		use(instance.Address, instance.Disabled)
	}
	for change := range orders.Changes(ctx) { // those that are there, and then every change
		switch {
		case change.Gone:
			forget(change.Path)
		case change.Err != nil:
			log.Warn("no instance", "path", change.Path, "error", change.Err)
		default:
			keep(change.Path, change.Instance)
		}
	}
	return nil
}

func weighOrders(
	services *discovery.ServiceDiscovery[Meta], zone string,
) *discovery.ServiceProvider[Meta] {
	orders := services.Provider("orders",
		discovery.WithStrategy(discovery.Weighted(func(i discovery.ServiceInstance[Meta]) float64 {
			return i.Payload.Weight
		})),
		discovery.WithFilter(func(i discovery.ServiceInstance[Meta]) bool { return i.Payload.Zone == zone }),
		discovery.WithDownInstancePolicy[Meta](time.Minute, 3)) // three errors in a minute: down for a minute
	return orders
}

func servicesOfMeta(client *framework.Client) *discovery.ServiceDiscovery[Meta] {
	services := discovery.New[Meta](client, "/services", discovery.WithPayloadClass("com.acme.Meta"))
	return services
}

func guardServices(servers string) (*framework.Client, error) {
	acl := append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...) // we write, all read
	client, err := framework.New(servers,
		framework.WithAuth("digest", []byte("registrar:secret")),
		framework.WithACLProvider(builders.FixedACL(acl)))
	return client, err
}

// ZookeeperInstance is the payload of spring-cloud-zookeeper.
type ZookeeperInstance struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Metadata map[string]string `json:"metadata"`
}

func besideSpring(client *framework.Client) *springServices {
	services := discovery.New[ZookeeperInstance](client, "/services",
		discovery.WithPayloadClass("org.springframework.cloud.zookeeper.discovery.ZookeeperInstance"))
	return services
}

func offerToSpring(ctx context.Context, services *springServices) (springInstance, error) {
	instance := discovery.NewServiceInstance[ZookeeperInstance]("orders", "10.0.0.7", 8080)
	instance.URISpec = discovery.MustParseURISpec("{scheme}://{address}:{port}")
	instance.Payload = ZookeeperInstance{ID: "orders-1", Name: "orders", Metadata: map[string]string{}}
	err := services.Register(ctx, instance)
	return instance, err
}

func providerOfSpring(services *springServices) *discovery.ServiceProvider[ZookeeperInstance] {
	orders := services.Provider("orders", discovery.WithFilter(
		func(i discovery.ServiceInstance[ZookeeperInstance]) bool {
			status := i.Payload.Metadata["instance_status"]
			return status == "" || strings.EqualFold(status, "UP")
		}))
	return orders
}

func drainBesideSpring(ctx context.Context, services *springServices, instance springInstance) error {
	instance.Payload.Metadata = map[string]string{"instance_status": "OUT_OF_SERVICE"}
	if err := services.Update(ctx, instance); err != nil {
		return err
	}
	err := services.Drain(ctx, instance, time.Minute)
	return err
}

func serve(client *framework.Client, mux *http.ServeMux, authenticated func(http.Handler) http.Handler) error {
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		return err
	}
	handler := http.TimeoutHandler(rest.NewHandler(services), 10*time.Second, "ZooKeeper does not answer")
	mux.Handle("/discovery/", authenticated(http.StripPrefix("/discovery", handler)))
	return nil
}

func purge(ctx context.Context, services *textServices) (int, error) {
	n, err := services.Purge(ctx, 15*time.Minute) // every minute, on one server: as its leader, for example
	return n, err
}

func serveAsJava(ctx context.Context, services *textServices, mux *http.ServeMux) {
	mux.Handle("/", rest.NewHandler(services))
	for range time.Tick(time.Minute) {
		if _, err := services.Purge(ctx, 15*time.Minute); err != nil {
			log.Warn("purge", "error", err)
		}
	}
}

func registerAndClose(ctx context.Context, client *framework.Client, address string) error {
	instance := discovery.NewServiceInstance[string](
		"orders", address, 8080)
	instance.Payload = "eu"
	services := discovery.New[string](client, "/services")
	if err := services.Start(); err != nil {
		return err
	}
	if err := services.Register(ctx, instance); err != nil {
		return err // Java logs it
	}
	return services.Close(ctx) // static instances stay
}

func changeServices(ctx context.Context, services *textServices, instance, newer textInstance) error {
	err := services.Register(ctx, instance)
	if err != nil {
		return err
	}
	err = services.Update(ctx, newer)
	if err != nil {
		return err
	}
	err = services.Unregister(ctx, newer)
	return err
}

func queryServices(ctx context.Context, services *textServices, id string) error {
	names, err := services.Names(ctx)
	if err != nil {
		return err
	}
	all, err := services.Instances(ctx, "orders")
	if err != nil {
		return err
	}
	one, err := services.Instance(ctx, "orders", id)
	if errors.Is(err, discovery.ErrNoInstance) {
		return nil // there is none
	}
	use(names, all, one)
	return err
}

func followOrders(ctx context.Context, services *textServices) error {
	orders := services.Cache("orders")
	orders.AddListener(func(
		_ context.Context, _ discovery.Change[string],
	) {
		use(orders.Instances())
	})
	if err := orders.Start(ctx); err != nil {
		return err
	}
	now := orders.Instances()
	use(now)
	return orders.Close()
}

func stickyProvider(ctx context.Context, services *textServices) (*discovery.ServiceProvider[string], error) {
	provider := services.Provider("orders",
		discovery.WithStrategy(discovery.Sticky(
			discovery.Random[string]())),
		discovery.WithDownInstancePolicy[string](
			30*time.Second, 2),
		discovery.WithFilter(
			func(i discovery.ServiceInstance[string]) bool {
				return i.Payload == "eu"
			}))
	err := provider.Start(ctx)
	return provider, err
}

func chooseOnce(ctx context.Context, provider *discovery.ServiceProvider[string]) error {
	one, err := provider.Instance()
	if err != nil {
		return err // discovery.ErrNoInstance; Pick waits
	}
	if err := call(ctx, one.Address, one.Port); err != nil {
		provider.NoteError(one)
	}
	return nil
}

type first struct{}

func (first) Choose(
	all []*discovery.Candidate[string],
) *discovery.Candidate[string] {
	return all[0] // there is at least one
}

func encodeMeta(instance discovery.ServiceInstance[Meta]) (text string, err error) {
	err = func() error {
		serializer, err := discovery.NewInstanceSerializer[Meta](
			discovery.WithPayloadClass("com.acme.Meta"))
		if err != nil {
			return err
		}
		data, err := serializer.Encode(instance)
		text = string(data)
		return err
	}()
	return text, err
}

func uriOf(instance textInstance) string {
	instance.URISpec = discovery.MustParseURISpec(
		"{scheme}://{address}:{port}")
	uri := instance.URI(nil)
	return uri
}
