import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.details.ServiceCacheListener;

/** Service discovery. The window is the number of instances. */
final class Services {
    private static final int PATIENCE_SECONDS = 60;
    private static final int SERVICES = 50;

    private Services() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("instances-return", Services::comeBack);
        cases.put("instance-seen", Services::seen);
        cases.put("instance-pick", Services::pick);
    }

    /**
     * Ends the session of the instances, again and again. The latency is from the first deleted instance until all are
     * there again. Another client observes both.
     */
    private static Result comeBack(Load load) throws Exception {
        List<ServiceInstance<String>> instances = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (int i = 0; i < load.window; i++) {
            ServiceInstance<String> instance = instance("service-" + i % SERVICES, i, load);
            instances.add(instance);
            names.add(instance.getName() + "/" + instance.getId());
        }
        Kept kept = new Kept(load, names);
        ServiceDiscovery<String> discovery = discovery(kept.client, kept.parent);
        for (ServiceInstance<String> instance : instances) {
            discovery.registerService(instance);
        }
        kept.awaitComplete();
        Result result = kept.measure(load);
        discovery.close();
        kept.close();
        return result;
    }

    /**
     * Registers an instance with one client while as many others as there are threads watch the service, and takes it
     * out again when all have seen it. The latency is from the call until the listener of a client has it. An operation
     * is an instance that a client has seen.
     */
    private static Result seen(Load load) throws Exception {
        String path = Target.newPath("services");
        CuratorFramework client = load.target.client(0);
        client.create().creatingParentsIfNeeded().forPath(path);
        ServiceDiscovery<String> registrar = discovery(client, path);
        ServiceInstance<String> one = instance("service", 0, load);
        BlockingQueue<Long> seen = new LinkedBlockingQueue<>();
        BlockingQueue<Long> gone = new LinkedBlockingQueue<>();
        List<AutoCloseable> watchers = new ArrayList<>();
        for (int i = 0; i < load.threads; i++) {
            ServiceDiscovery<String> discovery = discovery(load.target.client(1 + i), path);
            ServiceCache<String> cache =
                    discovery.serviceCacheBuilder().name(one.getName()).build();
            cache.addListener(new ServiceCacheListener() {
                @Override
                public void cacheChanged() {
                    (cache.getInstances().isEmpty() ? gone : seen).add(System.nanoTime());
                }

                @Override
                public void stateChanged(CuratorFramework of, ConnectionState state) {
                    // the connection stays
                }
            });
            cache.start();
            watchers.add(cache);
            watchers.add(discovery);
        }
        Result result = new Result();
        Result first = new Result(); // it creates the node of the service
        comeAndGo(load, registrar, one, seen, gone, first);
        result.start();
        long end = System.nanoTime() + load.nanos();
        do {
            comeAndGo(load, registrar, one, seen, gone, result);
        } while (System.nanoTime() < end);
        result.stop();
        for (AutoCloseable watcher : watchers) {
            watcher.close();
        }
        registrar.close();
        client.delete().deletingChildrenIfNeeded().forPath(path);
        return result;
    }

    private static void comeAndGo(
            Load load,
            ServiceDiscovery<String> registrar,
            ServiceInstance<String> one,
            BlockingQueue<Long> seen,
            BlockingQueue<Long> gone,
            Result result)
            throws Exception {
        long start = System.nanoTime();
        registrar.registerService(one);
        for (int i = 0; i < load.threads; i++) {
            result.add(next(seen) - start);
        }
        registrar.unregisterService(one);
        for (int i = 0; i < load.threads; i++) {
            next(gone);
        }
    }

    /** Picks one of the instances of a service, in turn, again and again. */
    private static Result pick(Load load) throws Exception {
        String path = Target.newPath("services");
        CuratorFramework client = load.target.client(0);
        client.create().creatingParentsIfNeeded().forPath(path);
        ServiceDiscovery<String> discovery = discovery(client, path);
        for (int i = 0; i < load.window; i++) {
            discovery.registerService(instance("service", i, load));
        }
        ServiceProvider<String> provider =
                discovery.serviceProviderBuilder().serviceName("service").build();
        provider.start();
        if (provider.getAllInstances().size() != load.window) {
            throw new IllegalStateException("the provider has not all instances");
        }
        Loops loops = new Loops();
        loops.add(() -> {
            if (provider.getInstance() == null) {
                throw new IllegalStateException("no instance");
            }
            return -1;
        });
        Result result = loops.run(load.seconds);
        provider.close();
        discovery.close();
        client.delete().deletingChildrenIfNeeded().forPath(path);
        return result;
    }

    private static ServiceDiscovery<String> discovery(CuratorFramework client, String path) throws Exception {
        ServiceDiscovery<String> discovery = ServiceDiscoveryBuilder.builder(String.class)
                .client(client)
                .basePath(path)
                .build();
        discovery.start();
        return discovery;
    }

    private static ServiceInstance<String> instance(String service, int number, Load load) throws Exception {
        return ServiceInstance.<String>builder()
                .name(service)
                .id("instance-" + number)
                .address("10.0.0.1")
                .port(8080)
                .payload("x".repeat(load.payload))
                .build();
    }

    private static long next(BlockingQueue<Long> times) throws InterruptedException {
        Long at = times.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (at == null) {
            throw new IllegalStateException("the listener of a client is not called");
        }
        return at;
    }
}
