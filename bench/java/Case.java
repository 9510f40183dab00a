/** A case runs its load once. */
interface Case {
    Result run(Load load) throws Exception;
}
