/** Measures from the call of one holder's release to the return of the next one's acquire. */
final class HandOver {
    private volatile long released; // written by the holder alone, if there is one

    long through(Lock lock) throws Exception {
        lock.acquire();
        long latency = released == 0 ? -1 : System.nanoTime() - released;
        release(lock);
        return latency;
    }

    void release(Lock lock) throws Exception {
        released = System.nanoTime();
        lock.release();
    }
}
