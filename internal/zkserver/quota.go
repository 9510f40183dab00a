package zkserver

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gocurator/curator/internal/jute"
)

// The quotas of a tree. The quota of /a is the node /zookeeper/quota/a/zookeeper_limits, and what /a has of it stands
// in the node zookeeper_stats beside that one. A path counts for the quota of its nearest node that has one.

const (
	limitsName = "zookeeper_limits"
	statsName  = "zookeeper_stats"

	quotaCount     = "count"
	quotaBytes     = "bytes"
	quotaHardCount = "countHardLimit"
	quotaHardBytes = "byteHardLimit"
)

// quota has the numbers of one of the two nodes, by name.
type quota map[string]int64

// parseQuota reads a list of name=number. Java fails for some lists, and so does it.
func parseQuota(data []byte) (quota, bool) {
	q := quota{}
	if data == nil {
		return nil, false
	}
	if len(data) == 0 {
		return q, true
	}
	text := strings.ReplaceAll(string(data), ";", ",")
	for strings.Contains(text, ",,") {
		text = strings.ReplaceAll(text, ",,", ",")
	}
	if text = strings.TrimSuffix(text, ","); text == "" {
		return q, true
	}
	for part := range strings.SplitSeq(text, ",") {
		fields := strings.Split(strings.TrimRight(part, "="), "=")
		if len(fields) < 2 {
			return nil, false
		}
		number := int64(noQuota)
		if fields[1] != "" {
			var err error
			if number, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
				return nil, false
			}
		}
		q[fields[0]] = number
	}
	return q, true
}

// noQuota stands for a number that is not there.
const noQuota = -1

func (q quota) get(name string) int64 {
	if n, ok := q[name]; ok {
		return n
	}
	return noQuota
}

// limit returns the limit of a number, which is hard if there is a hard one.
func (q quota) limit(soft, hard string) (limit int64, isHard bool) {
	if n := q.get(hard); n > noQuota {
		return n, true
	}
	return q.get(soft), false
}

// data returns the text of the node of the numbers.
func (q quota) data() []byte {
	text := quotaCount + "=" + strconv.FormatInt(q.get(quotaCount), 10) +
		"," + quotaBytes + "=" + strconv.FormatInt(q.get(quotaBytes), 10)
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(q)), func(name string) bool {
		return name == quotaCount || name == quotaBytes
	})
	if len(others) > 0 {
		text += "="
	}
	for _, name := range others {
		text += ";" + name + "=" + strconv.FormatInt(q[name], 10)
	}
	return []byte(text)
}

// quotaKey returns a path without the names that Java overlooks in paths with a quota, those of blanks.
func quotaKey(path string) string {
	names := slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return strings.Trim(name, " ") == "" })
	return "/" + strings.Join(names, "/")
}

// quotaOf returns the path of the node whose quota a path counts for.
func (t *tree) quotaOf(path string) (prefix string, ok bool) {
	if len(t.quotas) == 0 {
		return "", false
	}
	for prefix = quotaKey(path); prefix != rootPath; prefix, _ = split(prefix) {
		if _, ok := t.quotas[prefix]; ok {
			return prefix, true
		}
	}
	return "", false
}

// noteQuota takes note of a quota when its node is created or deleted.
func (t *tree) noteQuota(path string, created bool) {
	parent, name := split(path)
	if name != limitsName && name != statsName || !strings.HasPrefix(parent, systemPath) {
		return
	}
	of, below := strings.CutPrefix(parent, quotaPath)
	switch {
	case name == limitsName && created && below && of != "":
		t.quotas[quotaKey(of)] = struct{}{}
	case name == limitsName && !created && below:
		delete(t.quotas, quotaKey(of))
	case name == statsName && created && below:
		count, size := t.count(of)
		t.get(path).data = quota{quotaCount: count, quotaBytes: size}.data()
	}
}

// count counts a node and those below it, and the bytes of their data.
func (t *tree) count(path string) (count, size int64) {
	n := t.get(path)
	if n == nil {
		return 0, 0
	}
	count, size = 1, int64(len(n.data))
	for child := range n.children {
		c, s := t.count(path + "/" + child)
		count, size = count+c, size+s
	}
	return count, size
}

// useQuota adds to what a path has of its quota. No watch fires, and the node keeps its version.
func (t *tree) useQuota(path string, count, size int64) {
	prefix, ok := t.quotaOf(path)
	if !ok {
		return
	}
	n := t.nodes[quotaPath+prefix+"/"+statsName]
	if n == nil {
		return
	}
	used, ok := parseQuota(n.data)
	if !ok {
		return
	}
	used[quotaCount], used[quotaBytes] = used.get(quotaCount)+count, used.get(quotaBytes)+size
	n.data = used.data()
}

// checkQuota refuses a change beyond a hard limit of the quota of a path. It sees the tree without the other changes of
// its transaction, as Apache ZooKeeper does.
func (p *proposal) checkQuota(path string, count, size int64) jute.Code {
	if !p.enforceQuota {
		return jute.CodeOK
	}
	prefix, ok := p.tree.quotaOf(path)
	if !ok {
		return jute.CodeOK
	}
	node := p.tree.nodes[quotaPath+prefix+"/"+limitsName]
	if node == nil {
		return jute.CodeOK
	}
	limits, ok := parseQuota(node.data)
	if !ok {
		return jute.CodeMarshallingError
	}
	maxCount, hardCount := limits.limit(quotaCount, quotaHardCount)
	maxSize, hardSize := limits.limit(quotaBytes, quotaHardBytes)
	checkCount, checkSize := count != 0 && maxCount > noQuota, size != 0 && maxSize > noQuota
	node = p.tree.nodes[quotaPath+prefix+"/"+statsName]
	if !checkCount && !checkSize || node == nil {
		return jute.CodeOK
	}
	used, ok := parseQuota(node.data)
	switch {
	case !ok:
		return jute.CodeMarshallingError
	case checkCount && hardCount && used.get(quotaCount)+count > maxCount,
		checkSize && hardSize && used.get(quotaBytes)+size > maxSize:
		return jute.CodeQuotaExceeded
	}
	return jute.CodeOK
}
