import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicNumber;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicValue;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.retry.RetryNTimes;

/** Atomic numbers and values. */
final class Counters {
    private static final RetryNTimes RETRY = new RetryNTimes(10_000, 1);

    private final Scope scope;

    Counters(Scope scope) {
        this.scope = scope;
        numberCommands();
        valueCommands();
    }

    private void numberCommands() {
        Named<DistributedAtomicLong> longs = scope.named("atomic long");
        Named<DistributedAtomicInteger> integers = scope.named("atomic integer");
        scope.on("atomicLongNew", args -> {
            CuratorFramework client = scope.client(args);
            String lock = args.text("lockPath", null);
            longs.put(args, lock == null
                    ? new DistributedAtomicLong(client, args.path(), RETRY)
                    : new DistributedAtomicLong(client, args.path(), new RetryNTimes(0, 0),
                            PromotedToLock.builder().lockPath(lock).retryPolicy(RETRY).build()));
            return null;
        });
        scope.on("atomicIntegerNew", args -> {
            integers.put(args, new DistributedAtomicInteger(scope.client(args), args.path(), RETRY));
            return null;
        });
        scope.on("atomicLongGet", args -> fields(longs.get(args).get()));
        scope.on("atomicLongAdd", args -> fields(longs.get(args).add(args.longNumber("value"))));
        scope.on("atomicLongTrySet", args -> fields(longs.get(args).trySet(args.longNumber("value"))));
        scope.on("atomicLongCompareAndSet", args ->
                fields(longs.get(args).compareAndSet(args.longNumber("expected"), args.longNumber("value"))));
        scope.on("atomicLongInitialize", args -> longs.get(args).initialize(args.longNumber("value")));
        scope.on("atomicLongForceSet", args -> {
            longs.get(args).forceSet(args.longNumber("value"));
            return null;
        });
        scope.on("atomicLongCount", args -> count(longs.get(args), args.number("times")));
        scope.on("atomicLongNext", args -> fields(new CachedAtomicLong(longs.get(args), args.number("factor")).next()));
        scope.on("atomicIntegerGet", args -> fields(integers.get(args).get()));
        scope.on("atomicIntegerAdd", args -> fields(integers.get(args).add(args.number("value"))));
    }

    private void valueCommands() {
        Named<DistributedAtomicValue> values = scope.named("atomic value");
        scope.on("atomicValueNew", args -> {
            values.put(args, new DistributedAtomicValue(scope.client(args), args.path(), RETRY));
            return null;
        });
        scope.on("atomicValueGet", args -> Args.hex(values.get(args).get().postValue()));
        scope.on("atomicValueCompareAndSet", args ->
                values.get(args).compareAndSet(args.bytes("expected"), args.bytes("data")).succeeded());
        scope.on("atomicValueTrySet", args -> values.get(args).trySet(args.bytes("data")).succeeded());
    }

    /** Increments so many times, and returns how often that succeeded. */
    private static int count(DistributedAtomicNumber<Long> number, int times) throws Exception {
        int succeeded = 0;
        for (int i = 0; i < times; i++) {
            if (number.increment().succeeded()) {
                succeeded++;
            }
        }
        return succeeded;
    }

    private static Map<String, Object> fields(AtomicValue<? extends Number> value) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("succeeded", value.succeeded());
        fields.put("pre", value.preValue());
        fields.put("post", value.postValue());
        return fields;
    }
}
