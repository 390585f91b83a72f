// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title NameRegistry
/// @notice Rents names for a year; a registration is committed first and completed after a waiting time.
contract NameRegistry {
    struct Record {
        address holder;
        uint256 expiresAt;
        string target;
    }

    uint256 public constant FEE = 0.02 ether;
    uint256 public constant TERM = 365 days;
    uint256 public constant GRACE = 30 days;
    uint256 public constant MIN_COMMIT_AGE = 5 minutes;
    uint256 public constant MAX_COMMIT_AGE = 1 days;

    address public immutable registrar;
    mapping(bytes32 => Record) private records;
    mapping(bytes32 => uint256) public commitments;

    event Committed(bytes32 indexed commitment);
    event Registered(string name, address indexed holder, uint256 expiresAt);
    event Renewed(string name, uint256 expiresAt);
    event TargetSet(string name, string target);
    event Transferred(string name, address indexed to);

    constructor() {
        registrar = msg.sender;
    }

    /// @notice Commitment of a registrant to a name with a secret that the registrant chooses.
    function commitmentFor(string calldata name, address registrant, bytes32 secret) public pure returns (bytes32) {
        return keccak256(abi.encode(name, registrant, secret));
    }

    /// @notice Stores a commitment unless the same one is still waiting.
    function commit(bytes32 commitment) external {
        require(block.timestamp > commitments[commitment] + MAX_COMMIT_AGE, "commitment waiting");
        commitments[commitment] = block.timestamp;
        emit Committed(commitment);
    }

    /// @notice Registers a committed name for the caller.
    function register(string calldata name, bytes32 secret) external payable {
        require(bytes(name).length >= 3, "name too short");
        require(msg.value == FEE, "wrong fee");
        bytes32 commitment = commitmentFor(name, msg.sender, secret);
        uint256 committedAt = commitments[commitment];
        require(committedAt != 0, "no commitment");
        require(block.timestamp >= committedAt + MIN_COMMIT_AGE, "commitment too new");
        require(block.timestamp <= committedAt + MAX_COMMIT_AGE, "commitment too old");
        delete commitments[commitment];

        bytes32 key = keccak256(bytes(name));
        require(available(key), "name taken");
        records[key] = Record(msg.sender, block.timestamp + TERM, "");
        emit Registered(name, msg.sender, block.timestamp + TERM);
    }

    /// @notice Extends a registration by another term; anyone may pay for it.
    function renew(string calldata name) external payable {
        require(msg.value == FEE, "wrong fee");
        bytes32 key = keccak256(bytes(name));
        require(!available(key), "not registered");
        records[key].expiresAt += TERM;
        emit Renewed(name, records[key].expiresAt);
    }

    /// @notice Sets what a name points to.
    function setTarget(string calldata name, string calldata target) external {
        _held(name).target = target;
        emit TargetSet(name, target);
    }

    /// @notice Gives a name to another holder.
    function transferName(string calldata name, address to) external {
        require(to != address(0), "zero address");
        _held(name).holder = to;
        emit Transferred(name, to);
    }

    /// @notice Pays the collected fees to the registrar.
    function collectFees() external {
        (bool sent, ) = registrar.call{value: address(this).balance}("");
        require(sent, "transfer failed");
    }

    /// @notice Whether the name with this hash can be registered: never was, or its grace period is over.
    function available(bytes32 key) public view returns (bool) {
        Record storage record = records[key];
        return record.holder == address(0) || block.timestamp > record.expiresAt + GRACE;
    }

    /// @notice Holder and target of a name; empty once the registration has expired.
    function resolve(string calldata name) external view returns (address holder, string memory target) {
        Record storage record = records[keccak256(bytes(name))];
        if (block.timestamp <= record.expiresAt) {
            return (record.holder, record.target);
        }
    }

    function _held(string calldata name) private view returns (Record storage record) {
        record = records[keccak256(bytes(name))];
        require(record.holder == msg.sender && block.timestamp <= record.expiresAt, "not holder");
    }
}
