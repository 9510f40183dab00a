import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueuePutListener;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.KeeperException;

/** The plain queue, its producer and its consumer with a client each. An operation is an item. */
final class Queues {
    private static final int PATIENCE_SECONDS = 60;

    private Queues() {}

    static void addTo(Map<String, Case> cases) {
        cases.put("queue", Queues::endToEnd);
        cases.put("queue-put", Queues::put);
        cases.put("queue-consume", Queues::consume);
        cases.put("queue-backlog", Queues::backlog);
    }

    /** Puts while fewer items than the window are on their way. The latency is from put to the consumer. */
    private static Result endToEnd(Load load) throws Exception {
        Result result = new Result();
        Semaphore window = new Semaphore(load.window);
        try (Queue queue = new Queue(load)) {
            queue.produce(null);
            queue.consume(at -> {
                result.add(System.nanoTime() - at);
                window.release();
            });
            result.start();
            long end = System.nanoTime() + load.nanos();
            do {
                window.acquire(load.batch);
                queue.put(load.batch);
            } while (System.nanoTime() < end);
            allBack(window, load.window);
            result.stop();
        }
        return result;
    }

    /** Puts while fewer puts than the window are without an answer; nobody consumes. The latency is to the answer. */
    private static Result put(Load load) throws Exception {
        Result result = new Result();
        Semaphore window = new Semaphore(load.window);
        try (Queue queue = new Queue(load)) {
            queue.produce(new QueuePutListener<byte[]>() {
                @Override
                public void putCompleted(byte[] item) {
                    done(item);
                }

                @Override
                public void putMultiCompleted(MultiItem<byte[]> items) {
                    for (byte[] item : ((Batch) items).items) {
                        done(item);
                    }
                }

                private void done(byte[] item) {
                    result.add(System.nanoTime() - Queue.putAt(item));
                    window.release();
                }
            });
            result.start();
            long end = System.nanoTime() + load.nanos();
            do {
                window.acquire(load.batch);
                queue.put(load.batch);
            } while (System.nanoTime() < end);
            allBack(window, load.window);
            result.stop();
        }
        return result;
    }

    /** Consumes items that were put before: as many as the window is wide, or fewer if the time is up. */
    private static Result consume(Load load) throws Exception {
        Result result = new Result();
        CountDownLatch first = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(load.window);
        try (Queue queue = new Queue(load)) {
            queue.produce(null);
            queue.fill(load.window);
            result.start();
            queue.consume(at -> {
                result.add(-1);
                first.countDown();
                left.countDown();
            });
            left.await(load.nanos(), TimeUnit.NANOSECONDS);
            first.await();
            result.stop();
        }
        return result;
    }

    /** Consumes from a queue with as many items as the window is wide, and replaces each consumed item. */
    private static Result backlog(Load load) throws Exception {
        Result result = new Result();
        CountDownLatch first = new CountDownLatch(1);
        try (Queue queue = new Queue(load)) {
            queue.produce(null);
            queue.fill(load.window);
            result.start();
            queue.consume(at -> {
                result.add(-1);
                first.countDown();
                queue.put(1);
            });
            TimeUnit.NANOSECONDS.sleep(load.nanos());
            first.await();
            result.stop();
        }
        return result;
    }

    private static void allBack(Semaphore window, int size) throws InterruptedException {
        if (!window.tryAcquire(size, PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException(window.availablePermits() + " of " + size + " items are back");
        }
    }

    /** Several items that are put as one node. */
    private static final class Batch implements MultiItem<byte[]> {
        private final List<byte[]> items;
        private int taken;

        Batch(List<byte[]> items) {
            this.items = items;
        }

        @Override
        public byte[] nextItem() {
            return taken < items.size() ? items.get(taken++) : null;
        }
    }

    /** The queue of one run. Each item holds the time of its put. */
    private static final class Queue implements AutoCloseable {
        private static final QueueSerializer<byte[]> AS_IT_IS = new QueueSerializer<>() {
            @Override
            public byte[] serialize(byte[] item) {
                return item;
            }

            @Override
            public byte[] deserialize(byte[] bytes) {
                return bytes;
            }
        };

        private final Load load;
        private final String path = Target.newPath("queue");
        private DistributedQueue<byte[]> producer;
        private DistributedQueue<byte[]> consumer;

        Queue(Load load) {
            this.load = load;
        }

        static long putAt(byte[] item) {
            return ByteBuffer.wrap(item).getLong();
        }

        void produce(QueuePutListener<byte[]> listener) throws Exception {
            producer = build(load.target.client(0), null);
            if (listener != null) {
                producer.getPutListenerContainer().addListener(listener);
            }
            producer.start();
        }

        /** Calls take with the time at which each item was put. */
        void consume(Take take) throws Exception {
            consumer = build(load.target.client(1), new QueueConsumer<>() {
                @Override
                public void consumeMessage(byte[] item) throws Exception {
                    take.item(putAt(item));
                }

                @Override
                public void stateChanged(CuratorFramework client, ConnectionState state) {}
            });
            consumer.start();
        }

        private DistributedQueue<byte[]> build(CuratorFramework client, QueueConsumer<byte[]> consumer) {
            QueueBuilder<byte[]> builder = QueueBuilder.builder(client, consumer, AS_IT_IS, path);
            return (load.safe ? builder.lockPath(path + "-locks") : builder).buildQueue();
        }

        void put(int items) throws Exception {
            if (items == 1) {
                producer.put(item());
                return;
            }
            List<byte[]> batch = new ArrayList<>();
            for (int i = 0; i < items; i++) {
                batch.add(item());
            }
            producer.putMulti(new Batch(batch));
        }

        private byte[] item() {
            return ByteBuffer.allocate(Math.max(load.payload, Long.BYTES)).putLong(System.nanoTime()).array();
        }

        void fill(int items) throws Exception {
            for (int i = 0; i < items; i += load.batch) {
                put(load.batch);
            }
            if (!producer.flushPuts(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the queue could not be filled");
            }
        }

        @Override
        public void close() throws Exception {
            if (consumer != null) {
                consumer.close();
            }
            producer.flushPuts(PATIENCE_SECONDS, TimeUnit.SECONDS);
            producer.close();
            CuratorFramework client = load.target.client(0);
            if (load.safe) {
                client.delete().deletingChildrenIfNeeded().forPath(path + "-locks");
            }
            try {
                remove(client);
            } catch (KeeperException.NoNodeException e) {
                remove(client); // the consumer was just deleting one
            }
        }

        private void remove(CuratorFramework client) throws Exception {
            List<String> paths = new ArrayList<>();
            for (String name : client.getChildren().forPath(path)) {
                paths.add(path + "/" + name);
            }
            paths.add(path);
            Scratch.remove(client, paths);
        }
    }

    /** A function of the time at which an item was put. */
    private interface Take {
        void item(long putAt) throws Exception;
    }
}
