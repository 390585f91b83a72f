// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title WorkshopPayroll
/// @notice An employer credits wages; workers collect them whenever they like.
contract WorkshopPayroll {
    address public immutable employer;
    uint256 public totalOwed;

    mapping(address => bool) public isWorker;
    mapping(address => uint256) public owedTo;

    event WorkerAdded(address indexed worker);
    event WorkerRemoved(address indexed worker);
    event WageCredited(address indexed worker, uint256 amount);
    event WageCollected(address indexed worker, uint256 amount);
    event SurplusReturned(uint256 amount);

    modifier onlyEmployer() {
        require(msg.sender == employer, "not employer");
        _;
    }

    constructor() payable {
        employer = msg.sender;
    }

    receive() external payable {}

    function addWorker(address worker) external onlyEmployer {
        require(worker != address(0), "zero address");
        require(!isWorker[worker], "already employed");
        isWorker[worker] = true;
        emit WorkerAdded(worker);
    }

    /// @notice Ends an employment; wages credited so far can still be collected.
    function removeWorker(address worker) external onlyEmployer {
        require(isWorker[worker], "not employed");
        isWorker[worker] = false;
        emit WorkerRemoved(worker);
    }

    /// @notice Credits a wage, which has to be covered by the ether held here.
    function creditWage(address worker, uint256 amount) public onlyEmployer {
        require(isWorker[worker], "not employed");
        require(totalOwed + amount <= address(this).balance, "not covered");
        owedTo[worker] += amount;
        totalOwed += amount;
        emit WageCredited(worker, amount);
    }

    /// @notice Credits several wages at once.
    function creditWages(address[] calldata workers, uint256[] calldata amounts) external onlyEmployer {
        require(workers.length == amounts.length, "length mismatch");
        for (uint256 i = 0; i < workers.length; i++) {
            creditWage(workers[i], amounts[i]);
        }
    }

    /// @notice Pays the caller's wages out.
    function collect() external {
        uint256 amount = owedTo[msg.sender];
        require(amount > 0, "nothing owed");
        owedTo[msg.sender] = 0;
        totalOwed -= amount;
        payable(msg.sender).send(amount);
        emit WageCollected(msg.sender, amount);
    }

    /// @notice Returns ether that covers no wage to the employer.
    function returnSurplus() external onlyEmployer {
        uint256 amount = address(this).balance - totalOwed;
        require(amount > 0, "no surplus");
        emit SurplusReturned(amount);
        (bool sent, ) = employer.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
