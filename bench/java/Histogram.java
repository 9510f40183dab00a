/** Counts values in classes not wider than 1/128 of the value. */
final class Histogram {
    private static final int BITS = 7;
    private static final int HALF = 1 << BITS;
    private final long[] counts = new long[(64 - BITS) * HALF];
    private long total;

    void add(long value) {
        int shift = Math.max(0, 63 - BITS - Long.numberOfLeadingZeros(value));
        counts[shift * HALF + (int) (value >>> shift)]++;
        total++;
    }

    void merge(Histogram part) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += part.counts[i];
        }
        total += part.total;
    }

    /** Returns the middle of the class in which this part of the values is reached, or 0 without values. */
    double percentile(double part) {
        long rank = Math.max(1, (long) Math.ceil(part * total));
        long seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= rank) {
                int shift = Math.max(0, i / HALF - 1);
                long low = (long) (i - shift * HALF) << shift;
                return low + ((1L << shift) - 1) / 2.0;
            }
        }
        return 0;
    }
}
