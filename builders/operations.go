package builders

// Create builds a create of a node.
func (e *environment) Create() Create { return Create{env: e} }

// Delete builds a delete of a node.
func (e *environment) Delete() Delete { return Delete{env: e, version: -1} }

// CheckExists builds a check whether a node exists.
func (e *environment) CheckExists() CheckExists { return CheckExists{env: e} }

// GetData builds a read of a node's data.
func (e *environment) GetData() GetData { return GetData{env: e} }

// SetData builds a write of a node's data.
func (e *environment) SetData() SetData { return SetData{env: e, version: -1} }

// GetChildren builds a list of a node's children.
func (e *environment) GetChildren() GetChildren { return GetChildren{env: e} }

// GetEphemerals builds a list of the session's ephemeral nodes.
func (e *environment) GetEphemerals() GetEphemerals { return GetEphemerals{env: e} }

// GetAllChildrenNumber builds a count of all nodes below a node.
func (e *environment) GetAllChildrenNumber() GetAllChildrenNumber {
	return GetAllChildrenNumber{env: e}
}

// MultiRead builds a read of many nodes with one request.
func (e *environment) MultiRead() MultiRead { return MultiRead{env: e} }

// GetACL builds a read of a node's ACL.
func (e *environment) GetACL() GetACL { return GetACL{env: e} }

// SetACL builds a write of a node's ACL.
func (e *environment) SetACL() SetACL { return SetACL{env: e, version: -1} }

// Sync builds a sync: the server catches up with the leader.
func (e *environment) Sync() Sync { return Sync{env: e} }

// Transaction builds a transaction of operations that TransactionOp builds.
func (e *environment) Transaction() Transaction { return Transaction{env: e} }

// TransactionOp builds the operations of a transaction.
func (e *environment) TransactionOp() TransactionOp { return TransactionOp{env: e} }

// Watches builds additions and removals of watches.
func (e *environment) Watches() Watches { return Watches{env: e} }

// GetConfig builds a read of the ensemble's configuration.
func (e *environment) GetConfig() GetConfig { return GetConfig{env: e} }

// Reconfig builds a change of the ensemble's members.
func (e *environment) Reconfig() Reconfig { return Reconfig{env: e, from: -1} }
