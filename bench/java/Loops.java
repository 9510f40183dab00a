import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** Operations that are repeated, at least once, each on a thread of its own. */
final class Loops {
    /** One operation. It returns the latency to record in ns; a negative one is not recorded. */
    interface Operation {
        long run() throws Exception;
    }

    private final List<Operation> operations = new ArrayList<>();

    void add(Operation operation) {
        operations.add(operation);
    }

    /** Runs them until the time is up. */
    Result run(double seconds) throws InterruptedException {
        Result total = new Result();
        List<Result> results = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        CountDownLatch ready = new CountDownLatch(operations.size());
        CountDownLatch go = new CountDownLatch(1);
        for (Operation operation : operations) {
            Result result = new Result();
            results.add(result);
            Thread thread = new Thread(() -> {
                ready.countDown();
                try {
                    go.await();
                    long end = System.nanoTime() + (long) (seconds * 1e9);
                    do {
                        result.add(operation.run());
                    } while (System.nanoTime() < end);
                } catch (Exception e) {
                    result.fail(e); // this loop ends
                }
            });
            threads.add(thread);
            thread.start();
        }
        ready.await();
        total.start();
        go.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        total.stop();
        results.forEach(total::merge);
        return total;
    }
}
