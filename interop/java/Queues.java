import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.ErrorMode;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Queues; their items are text. */
final class Queues {
    private static final QueueSerializer<String> TEXT = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    };

    /** The last step of a builder. */
    private interface Build<Q> {
        Q from(QueueBuilder<String> builder, Args args);
    }

    private final Scope scope;

    Queues(Scope scope) {
        this.scope = scope;
        queueCommands();
        priorityQueueCommands();
        delayQueueCommands();
        idQueueCommands();
        simpleQueueCommands();
    }

    private void queueCommands() {
        Named<DistributedQueue<String>> queues =
                baseCommands("queue", (builder, args) -> builder.buildQueue());
        scope.on("queuePut", args -> {
            queues.get(args).put(args.text("item"));
            return null;
        });
        scope.on("queuePutMulti", args -> {
            queues.get(args).putMulti(items(args));
            return null;
        });
    }

    private void priorityQueueCommands() {
        Named<DistributedPriorityQueue<String>> queues = baseCommands("priorityQueue", (builder, args) ->
                builder.buildPriorityQueue(args.number("minItemsBeforeRefresh", 0)));
        scope.on("priorityQueuePut", args -> {
            queues.get(args).put(args.text("item"), args.number("priority"));
            return null;
        });
        scope.on("priorityQueuePutMulti", args -> {
            queues.get(args).putMulti(items(args), args.number("priority"));
            return null;
        });
    }

    private void delayQueueCommands() {
        Named<DistributedDelayQueue<String>> queues =
                baseCommands("delayQueue", (builder, args) -> builder.buildDelayQueue());
        scope.on("delayQueuePut", args -> {
            queues.get(args).put(args.text("item"), args.longNumber("epochMs"));
            return null;
        });
        scope.on("delayQueuePutMulti", args -> {
            queues.get(args).putMulti(items(args), args.longNumber("epochMs"));
            return null;
        });
    }

    private void idQueueCommands() {
        Named<DistributedIdQueue<String>> queues =
                baseCommands("idQueue", (builder, args) -> builder.buildIdQueue());
        scope.on("idQueuePut", args -> {
            queues.get(args).put(args.text("item"), args.text("itemId"));
            return null;
        });
        scope.on("idQueueRemove", args -> queues.get(args).remove(args.text("itemId")));
    }

    /** Registers the commands of all queues but the simple one. */
    private <Q extends QueueBase<String>> Named<Q> baseCommands(String prefix, Build<Q> build) {
        Named<Q> queues = scope.named(prefix);
        Named<Consumer> consumers = scope.named("consumer of a " + prefix);
        scope.on(prefix + "Start", args -> {
            Consumer consumer = new Consumer(args.name(), args.number("failures", 0));
            QueueBuilder<String> builder = QueueBuilder.builder(
                    scope.client(args), args.flag("consume") ? consumer : null, TEXT, args.path());
            if (args.text("lockPath", null) != null) {
                builder.lockPath(args.text("lockPath"));
            }
            if (args.number("maxItems", 0) > 0) {
                builder.maxItems(args.number("maxItems"));
            }
            Q queue = build.from(builder, args);
            if (args.text("errorMode", null) != null) {
                queue.setErrorMode(ErrorMode.valueOf(args.text("errorMode")));
            }
            queues.put(args, queue);
            consumers.put(args, consumer);
            queue.start();
            return null;
        });
        scope.on(prefix + "LetGo", args -> {
            consumers.get(args).letGo.release();
            return null;
        });
        scope.on(prefix + "Flush", args -> queues.get(args).flushPuts(args.timeout(), TimeUnit.MILLISECONDS));
        scope.on(prefix + "Close", args -> {
            consumers.remove(args);
            queues.remove(args).close();
            return null;
        });
        return queues;
    }

    private void simpleQueueCommands() {
        Named<SimpleDistributedQueue> queues = scope.named("simple queue");
        scope.on("simpleQueueNew", args -> {
            queues.put(args, new SimpleDistributedQueue(scope.client(args), args.path()));
            return null;
        });
        scope.on("simpleQueueOffer", args -> queues.get(args).offer(args.bytes("data")));
        scope.on("simpleQueuePeek", args -> Args.hex(queues.get(args).peek()));
        scope.on("simpleQueueElement", args -> Args.hex(queues.get(args).element()));
        scope.on("simpleQueueRemove", args -> Args.hex(queues.get(args).remove()));
        scope.on("simpleQueuePoll", args -> Args.hex(queues.get(args).poll()));
        // Java's take() is the poll() with a timeout, without the timeout.
        scope.on("simpleQueueTake", args ->
                Args.hex(queues.get(args).poll(args.timeout(), TimeUnit.MILLISECONDS)));
    }

    private static MultiItem<String> items(Args args) {
        Iterator<String> items = args.texts("items").iterator();
        return () -> items.hasNext() ? items.next() : null;
    }

    /**
     * Reports every item except the first ones, which it refuses. It reports an item whose text begins with "hold"
     * first, and then holds it until it is released.
     */
    private final class Consumer implements QueueConsumer<String> {
        private final String name;
        private final AtomicInteger failures;
        private final Semaphore letGo = new Semaphore(0);

        Consumer(String name, int failures) {
            this.name = name;
            this.failures = new AtomicInteger(failures);
        }

        @Override
        public void consumeMessage(String message) throws InterruptedException {
            if (message.startsWith("hold")) {
                scope.event("held", "name", name, "item", message);
                letGo.acquire();
            }
            if (failures.getAndDecrement() > 0) {
                scope.event("refused", "name", name, "item", message);
                throw new IllegalStateException("refused");
            }
            scope.event("item", "name", name, "item", message);
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {
            // the client's own listener reports it
        }
    }
}
